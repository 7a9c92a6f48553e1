import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Authenticator } from '#http/caller.js';
import { identityHandlers } from './identity.commands.js';
import { ApiTokenRow, MembershipRow, UserRow } from './identity.entity.js';
import { memberHandlers } from './member.commands.js';
import { tokenHandlers } from './token.commands.js';
import { TokenUses } from './token-uses.service.js';
import { Sessions } from './sessions.service.js';
import { TokensService } from './tokens.service.js';

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiTokenRow, MembershipRow, UserRow])],
  providers: [
    { provide: Authenticator, useClass: TokensService },
    TokenUses,
    ...identityHandlers,
    ...memberHandlers,
    ...tokenHandlers,
    Sessions,
  ],
  exports: [Authenticator, Sessions],
})
export class IdentityModule {}
