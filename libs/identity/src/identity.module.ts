import { Global, Module } from '@nestjs/common';
import { Authenticator } from '#http/caller.js';
import { identityHandlers } from './identity.commands.js';
import { TokensService } from './tokens.service.js';

@Global()
@Module({
  providers: [{ provide: Authenticator, useClass: TokensService }, ...identityHandlers],
  exports: [Authenticator],
})
export class IdentityModule {}
