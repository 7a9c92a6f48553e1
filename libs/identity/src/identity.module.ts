import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Authenticator } from '#http/caller.js';
import { identityHandlers } from './identity.commands.js';
import { ApiTokenRow, MembershipRow, UserRow } from './identity.entity.js';
import { Sessions } from './sessions.service.js';
import { TokensService } from './tokens.service.js';

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiTokenRow, MembershipRow, UserRow])],
  providers: [{ provide: Authenticator, useClass: TokensService }, ...identityHandlers, Sessions],
  exports: [Authenticator, Sessions],
})
export class IdentityModule {}
