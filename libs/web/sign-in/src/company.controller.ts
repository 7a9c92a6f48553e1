import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#kernel/config.js';
import { NotFoundError } from '#kernel/errors.js';
import { Throttle } from '#http/throttle.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { Cookies } from '#pages/cookies.js';
import { WithoutSession } from '#pages/current-user.js';
import { ownPath } from '#pages/own-site.js';
import { PageError } from '#pages/page-error.js';
import { Pages } from '#pages/pages.service.js';
import { Company } from './company.client.js';
import { Doors } from './doors.service.js';

const COOKIE = 'inkpad-company';
const COOKIE_SECONDS = 10 * 60;
const PER_ADDRESS = { default: { limit: 60, ttl: 60_000 } };

/** Signing in with a company. By links and not by forms: the policy for forms holds for where they lead, too. */
@Controller('app/sign-in/company')
export class CompanyController {
  private readonly cookies: Cookies;

  constructor(
    private readonly company: Company,
    private readonly signIns: SignIns,
    private readonly doors: Doors,
    private readonly pages: Pages,
    config: Config,
  ) {
    this.cookies = new Cookies(config.publicUrl);
  }

  @Get()
  @WithoutSession()
  @Throttle(PER_ADDRESS)
  async begin(
    @Query('return_to') returnTo: string | undefined,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (!this.company.isKnown) throw new NotFoundError('Page');
    const { url, sealed } = await this.company.begin(ownPath(returnTo));
    this.cookies.set(reply, COOKIE, sealed, { maxAgeSeconds: COOKIE_SECONDS });
    await reply.header('cache-control', 'no-store').redirect(url, 303);
  }

  @Get('done')
  @WithoutSession()
  @Throttle(PER_ADDRESS)
  async finish(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (!this.company.isKnown) throw new NotFoundError('Page');
    const sealed = this.cookies.read(request, COOKIE);
    this.cookies.remove(reply, COOKIE);
    const at = request.url.indexOf('?');
    const query = at < 0 ? '' : request.url.slice(at);
    const { email, returnTo } = await this.company.finish(query, sealed);
    const user = await this.signIns.userByEmail(email);
    if (user === undefined) {
      throw new PageError(
        403,
        'You have no account here yet',
        `Your company knows you as ${email}. Ask an owner of a store to add you with this address.`,
      );
    }
    this.doors.letIn(reply, await this.signIns.asUser(this.doors.visitorOf(request), user));
    await this.pages.redirect(reply, returnTo);
  }
}
