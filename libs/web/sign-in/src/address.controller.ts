import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { Throttle } from '#http/throttle.js';
import { ConsoleWriter, CurrentUser, type SignedInUser } from '#pages/current-user.js';
import { PageError } from '#pages/page-error.js';
import { Pages } from '#pages/pages.service.js';
import { Addresses } from './addresses.service.js';

const PER_MINUTE = { default: { limit: 30, ttl: 60_000 } };

/** Serves the link that confirms a new e-mail address. */
@Controller('app/account/address')
export class AddressController {
  constructor(
    private readonly addresses: Addresses,
    private readonly pages: Pages,
  ) {}

  @Get()
  @Throttle(PER_MINUTE)
  async showConfirmation(
    @Query('token') tokenParameter: string | undefined,
    @CurrentUser() user: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const token = String(tokenParameter ?? '');
    const email = await this.addresses.find(user, token);
    if (email === undefined) throw createLinkError(user);
    await this.pages.sendConfirmation(request, reply, {
      question: 'Is this your new address?',
      about: email,
      text: 'You will sign in with this address, and links for new passwords will be sent to it.',
      yes: 'Use this address',
      no: 'Keep the old one',
      action: '/app/account/address',
      fields: { token },
      back: '/app/account',
    });
  }

  @Post()
  @TakesForm()
  @Throttle(PER_MINUTE)
  async confirm(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    try {
      await this.addresses.confirm(by, user, form['token'] ?? '');
    } catch (error) {
      if (error instanceof NotFoundError) throw createLinkError(user);
      if (!(error instanceof RejectedError)) throw error;
      throw new PageError(409, 'This address is already in use', 'Another user signs in with it.');
    }
    await this.pages.redirect(reply, '/app/account?done=address');
  }
}

function createLinkError({ email }: SignedInUser): PageError {
  return new PageError(
    404,
    'This link does not work any more',
    `It was used, has expired, was replaced by a newer link, or belongs to another user. You are signed in as ${email}.`,
  );
}
