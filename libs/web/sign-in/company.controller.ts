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

const COOKIE = 'inkpad-company';
const COOKIE_SECONDS = 10 * 60;

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
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    if (!this.identityProvider.isConfigured) throw new NotFoundError('Page');
    const { company: t } = localization.t.signIn;
    const { url, sealed } = await this.identityProvider.begin(parseReturnPath(returnTo), t);
    this.cookies.set(reply, COOKIE, sealed, { maxAgeSeconds: COOKIE_SECONDS });
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
    const sealed = this.cookies.read(request, COOKIE);
    this.cookies.remove(reply, COOKIE);
    const at = request.url.indexOf('?');
    const query = at < 0 ? '' : request.url.slice(at);
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
