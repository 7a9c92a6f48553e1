import { createParamDecorator, Injectable, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { readSource } from '#platform/http/caller.js';
import { negotiateLanguage } from '#platform/http/negotiation.js';
import { isAllowed } from '#identity/roles.js';
import { describeKeptForm } from '#web/pages/console-frame.js';
import type { ConsoleRequest } from '#web/pages/current-user.js';
import { getRootPath, setPageHeaders } from '#web/pages/page.js';
import { PageResult } from '#web/pages/page-results.js';
import { createPlainFrame } from '#web/pages/view.js';
import { getTranslations, LANGUAGE_CODES } from '#translations/translations.js';
import { renderCounterPage, type CounterPage } from './counter-page.js';
import type { CounterVisit } from './counter-visit.js';

/** Injects who is at the counter of the store of the path. What they do comes from the channel for staff. */
export const AtCounter = createParamDecorator(
  (_: unknown, execution: ExecutionContext): CounterVisit => {
    const request = execution.switchToHttp().getRequest<ConsoleRequest>();
    const { signedIn, store } = request;
    if (!signedIn || !store) throw new Error('the path of the page has no store');
    const localization = getTranslations(negotiateLanguage(request, LANGUAGE_CODES));
    return {
      context: {
        accountId: store.id,
        actor: { type: 'user', id: signedIn.userId },
        channel: 'staff',
        ...readSource(request),
      },
      user: {
        id: signedIn.userId,
        sessionId: signedIn.sessionId,
        csrf: signedIn.csrfToken,
        isManager: isAllowed(store.role, 'reverseCardEvent.any'),
      },
      path: `/counter/${store.id}`,
      localization,
      close: localization.t.counter.outcome.scanNext,
    };
  },
);

/** Shows the pages of the counter. */
@Injectable()
export class CounterPages {
  /** The prefix of every path, where the service shares its host with others. */
  readonly root: string;

  constructor(config: Config) {
    this.root = getRootPath(config);
  }

  /**
   * Shows a page to whoever is signed in, in the language of the browser.
   * @param isForAnybody leaves out who that is: browsers keep the page
   */
  show<D extends object>(
    request: FastifyRequest,
    { status = 200, ...page }: CounterPage<D> & { status?: number },
    isForAnybody = false,
  ): PageResult {
    const { signedIn, store } = request as ConsoleRequest;
    const plain = createPlainFrame(this.root, negotiateLanguage(request, LANGUAGE_CODES));
    const frame = {
      ...plain,
      notice: describeKeptForm(request as ConsoleRequest, plain.t),
      ...(signedIn &&
        !isForAnybody && {
          csrf: signedIn.csrfToken,
          user: { name: signedIn.name, email: signedIn.email },
        }),
      ...(store && { store }),
    };
    return new PageResult((_request, reply) =>
      setPageHeaders(reply.status(status), renderCounterPage(page, frame)),
    );
  }
}

/** Tells whether a script of the counter has sent the request: it gets JSON, and a form without a script a page. */
export function isScript({ headers }: FastifyRequest): boolean {
  return headers.accept === 'application/json';
}
