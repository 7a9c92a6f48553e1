import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Authenticator } from '#platform/http/caller.js';
import { ApiTokens } from './api-tokens.service.js';
import { AddressConfirmation } from './address-confirmation.service.js';
import { addressHandlers } from './address.commands.js';
import { CompanySignIns } from './company-sign-ins.service.js';
import { CounterPins } from './counter-pins.service.js';
import { identityHandlers } from './identity.commands.js';
import { ApiTokenRow, MembershipRow, UserRow } from './identity.entity.js';
import { invitationHandlers } from './invitation.commands.js';
import { memberHandlers } from './member.commands.js';
import { Members } from './members.service.js';
import { tokenHandlers } from './token.commands.js';
import { TokenController } from './token.controller.js';
import { TokenUses } from './token-uses.service.js';
import { Passwords } from './passwords.service.js';
import { SecondFactors } from './second-factors.service.js';
import { Sessions } from './sessions.service.js';
import { SignInFailures } from './sign-in-failures.service.js';
import { SignIns } from './sign-ins.service.js';
import { TokensService } from './tokens.service.js';
import { userHandlers } from './user.commands.js';
import { Users } from './users.service.js';

const SERVICES = [
  AddressConfirmation,
  ApiTokens,
  CompanySignIns,
  CounterPins,
  Members,
  Passwords,
  SecondFactors,
  Sessions,
  SignInFailures,
  SignIns,
  Users,
];

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiTokenRow, MembershipRow, UserRow])],
  controllers: [TokenController],
  providers: [
    { provide: Authenticator, useClass: TokensService },
    TokenUses,
    ...addressHandlers,
    ...identityHandlers,
    ...memberHandlers,
    ...invitationHandlers,
    ...tokenHandlers,
    ...userHandlers,
    ...SERVICES,
  ],
  exports: [Authenticator, ...SERVICES],
})
export class IdentityModule {}
