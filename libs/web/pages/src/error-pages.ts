import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import type { Config } from '#kernel/config.js';
import { UnknownOutcomeError } from '#kernel/errors.js';
import type { GatedRequest } from '#http/caller.js';
import type { Answer } from '#http/error-answer.js';
import type { ErrorPages } from '#http/errors.filter.js';
import { vary } from '#http/headers.js';
import { pathOf, routeOf } from '#http/path.js';
import { isConsole } from './console-gate.service.js';
import type { ConsoleRequest } from './current-user.js';
import { PageError } from './page-error.js';
import { drawPage, rootOf, sendDrawn } from './page.js';
import { createPlainFrame } from './page-frame.js';
import { viewOf } from './view.js';
import { errorWords, languages, type ErrorWords } from './words.js';

type ErrorView = {
  status: number;
  title: string;
  text: string;
  link: { path: string; text: string } | null;
  number: string;
};

const view = viewOf<ErrorView>(import.meta.url, './views/error.eta');

/** Pages for people without an account, who have no use for the page at `/`. */
const PUBLIC = /^[/](join|posters|passes)(?![^/])/;

/** Only programs ask there, whatever they accept. */
const FOR_PROGRAMS = /^[/](api|health|wallet)(?![^/])/;

/** What went wrong, said to a person instead of to a program. */
export class KindErrorPages implements ErrorPages {
  constructor(private readonly config: Config) {}

  takes(request: GatedRequest): boolean {
    if (isConsole(pathOf(request.url))) return true;
    return !FOR_PROGRAMS.test(routeOf(request)) && prefersPage(request);
  }

  isExpected(error: unknown): boolean {
    return error instanceof PageError;
  }

  send(error: unknown, answer: Answer, request: GatedRequest, reply: FastifyReply): void {
    const path = pathOf(request.url);
    const inConsole = isConsole(path);
    const wanted = inConsole ? 'en' : new Negotiator(request).language(languages);
    const { words, locale } = errorWords(wanted ?? 'en');
    const errorView = createErrorView(error, answer, words, locale);
    const link = inConsole ? linkInConsole(request, words) : { path: '/', text: words.start };
    const drawn = drawPage({
      kind: inConsole ? 'console' : 'public',
      title: errorView.title,
      view,
      data: {
        ...errorView,
        link: PUBLIC.test(path) ? null : link,
        number: words.requestNumber(request.requestId),
      },
      frame: createPlainFrame(rootOf(this.config), locale),
    });
    if (!inConsole) {
      vary(reply, 'Accept');
      vary(reply, 'Accept-Language');
    }
    void sendDrawn(reply.status(errorView.status), drawn);
  }
}

/** Nobody has looked for a session yet when there are too many requests, no such page or no database. */
function linkInConsole({ signedIn }: ConsoleRequest, { start }: ErrorWords): ErrorView['link'] {
  return { path: '/app', text: signedIn ? 'Your stores' : start };
}

const KINDS = ['application/json', 'application/problem+json', 'text/html'];

/** Programs that say nothing get JSON. Scripts of pages ask for other types than HTML. */
export function prefersPage(request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(KINDS) === 'text/html';
}

type Said = Pick<ErrorView, 'status' | 'title' | 'text'>;

function createErrorView(error: unknown, answer: Answer, words: ErrorWords, locale: string): Said {
  if (error instanceof PageError) return error;
  if (error instanceof UnknownOutcomeError) {
    return { status: 503, title: words.unsettled, text: words.unsettledWhy };
  }
  const { status } = answer;
  if (status === 404 || status === 405) {
    return { status, title: words.notFound, text: words.notFoundWhy };
  }
  if (status === 403) return { status, title: words.forbidden, text: words.forbiddenWhy };
  if (status === 429) {
    const seconds = new Intl.NumberFormat(locale, {
      style: 'unit',
      unit: 'second',
      unitDisplay: 'long',
    });
    const text = words.tooManyWhy(seconds.format(answer.retryAfterSeconds ?? 60));
    return { status, title: words.tooMany, text };
  }
  if (status === 503) return { status, title: words.unavailable, text: words.unavailableWhy };
  if (status >= 500) return { status, title: words.broken, text: words.brokenWhy };
  return { status, title: words.refused, text: words.refusedWhy };
}
