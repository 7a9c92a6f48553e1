import { createHash } from 'node:crypto';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Throttle } from '#platform/http/throttle.js';
import { CompanySignIns } from '#identity/company-sign-ins.service.js';
import { Cookies } from '#web/pages/cookies.js';
import { WithoutSession, Localized } from '#web/pages/current-user.js';
import { parseReturnPath, toReturnQuery } from '#web/pages/own-site.js';
import { PageError } from '#web/pages/page-error.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, redirectTo, redirectToUrl } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { IdentityProvider, createSignInError } from './company.client.js';
import { SessionCookies } from './session-cookies.service.js';
import { StartPaths } from './start-paths.service.js';

/** Begins the cookies of sign-ins that are under way, each with one of its own: a browser may have several tabs. */
const COOKIE = 'inkpad-company-';
const COOKIE_SECONDS = 10 * 60;
/** Limits the sign-ins of a browser that are under way: a header has room for few cookies. */
const MAX_UNDER_WAY = 5;

/** Signs in with a company. Links start it, because `form-action` of the policy also covers redirects of forms. */
@Controller('app/sign-in/company')
export class CompanyController {
  private readonly cookies: Cookies;

  constructor(
    private readonly identityProvider: IdentityProvider,
    private readonly signIns: CompanySignIns,
    private readonly sessionCookies: SessionCookies,
    private readonly startPaths: StartPaths,
    config: Config,
  ) {
    this.cookies = new Cookies(config.publicUrl);
  }

  @Get()
  @WithoutSession()
  @Throttle(60)
  async begin(
    @Query('return_to') returnTo: string | undefined,
    @Localized() localization: Localization,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    if (!this.identityProvider.isConfigured) throw new NotFoundError('Page');
    const { company: t } = localization.t.signIn;
    const { url, state, sealed } = await this.identityProvider.begin(parseReturnPath(returnTo), t);
    const underWay = this.cookies.listNames(request, COOKIE);
    for (const oldest of underWay.slice(0, Math.max(0, underWay.length + 1 - MAX_UNDER_WAY))) {
      this.cookies.remove(reply, oldest);
    }
    const options = { maxAgeSeconds: COOKIE_SECONDS };
    this.cookies.set(reply, toCookieName(state), sealed, options);
    return redirectToUrl(url);
  }

  @Get('done')
  @WithoutSession()
  @Throttle(60)
  async finish(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    if (!this.identityProvider.isConfigured) throw new NotFoundError('Page');
    const at = request.url.indexOf('?');
    const query = at < 0 ? '' : request.url.slice(at);
    const cookie = toCookieName(new URLSearchParams(query).get('state') ?? '');
    const sealed = this.cookies.read(request, cookie);
    this.cookies.remove(reply, cookie);
    const { company: t } = localizeRequest(request).t.signIn;
    const { person, returnTo } = await this.identityProvider.finish(query, sealed, t);
    const { email } = person;
    const outcome = await this.signIns.signIn(this.sessionCookies.readVisitor(request), person);
    if (outcome.kind === 'unknown' && email === null) {
      throw createSignInError(t.noEmail, t);
    }
    if (outcome.kind === 'unknown') {
      throw new PageError(403, t.noAccount, t.noAccountWhy({ email: email ?? '' }));
    }
    if (outcome.kind === 'taken') {
      throw new PageError(403, t.taken, t.takenWhy({ email: email ?? '' }));
    }
    if (outcome.kind === 'code') {
      this.sessionCookies.setPending(reply, outcome.session);
      return redirectTo(`/app/sign-in/code${toReturnQuery(returnTo)}`);
    }
    this.sessionCookies.set(reply, outcome.signedIn);
    return redirectTo(
      outcome.hasEndedAccess
        ? '/app/account?done=afresh'
        : await this.startPaths.find(outcome.signedIn.session, returnTo),
    );
  }
}

function toCookieName(state: string): string {
  return COOKIE + createHash('sha256').update(state).digest('hex').slice(0, 16);
}
