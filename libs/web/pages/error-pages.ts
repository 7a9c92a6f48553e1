import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#configuration/config.js';
import {
  DamagedHistoryError,
  EventStoreUnavailableError,
  InProgressError,
  MaintenanceError,
  UnknownOutcomeError,
} from '#platform/kernel/errors.js';
import { SAFE_METHODS, type AuthenticatedRequest } from '#platform/http/caller.js';
import type { ErrorResponse } from '#platform/http/error-response.js';
import type { ErrorPages } from '#platform/http/errors.filter.js';
import { negotiateLanguage, negotiateMediaType } from '#platform/http/negotiation.js';
import { getPath, getRoute } from '#platform/http/path.js';
import { getTranslations, LANGUAGE_CODES, type Translations } from '#translations/translations.js';
import { isConsolePath } from './console-guard.service.js';
import { createConsoleFrame } from './console-frame.js';
import type { ConsoleRequest } from './current-user.js';
import { KeptFormError } from './kept-form.js';
import { PageError } from './page-error.js';
import { renderPage, getRootPath, setPageHeaders } from './page.js';
import { createPlainFrame, loadView } from './view.js';

type ErrorView = {
  status: number;
  title: string;
  text: string;
  link: { path: string; text: string } | null;
  number: string;
};

const view = loadView<ErrorView>(import.meta.url, './views/error.eta');

/** Pages for people without an account, whom a link to `/` would not help. */
const PUBLIC_ROUTES = /^[/](join|posters|passes|card-previews)(?![^/])/;

const DOCS_ROUTES = /^[/]docs(?![^/])/;

/** Routes that only programs call, whatever their Accept header says. */
const PROGRAM_ROUTES = /^[/](api|health|mcp|wallet)(?![^/])/;

/** Renders errors as HTML pages for people; programs get JSON. */
export class HtmlErrorPages implements ErrorPages {
  constructor(private readonly config: Config) {}

  handles(request: AuthenticatedRequest, reply: FastifyReply): boolean {
    if (isConsolePath(getPath(request.url))) return true;
    return !PROGRAM_ROUTES.test(getRoute(request)) && prefersPage(request, reply);
  }

  isExpected(error: unknown): boolean {
    return error instanceof PageError;
  }

  send(
    error: unknown,
    response: ErrorResponse,
    request: AuthenticatedRequest,
    reply: FastifyReply,
  ): void {
    const path = getPath(request.url);
    const isInConsole = isConsolePath(path);
    const language = negotiateLanguage(request, LANGUAGE_CODES, reply);
    const { t: translations, locale } = getTranslations(language);
    const t = translations.errorPage;
    const isChange = isInConsole && !SAFE_METHODS.has(request.method);
    const text =
      error instanceof KeptFormError
        ? { status: 200, title: translations.forms.formKept, text: translations.forms.sendAgain }
        : describeError(error, response, t, locale, isChange);
    const link = isInConsole ? buildConsoleLink(request, translations) : buildPublicLink(path, t);
    const root = getRootPath(this.config);
    const { frame, at } = isInConsole
      ? createConsoleFrame(root, request)
      : { frame: createPlainFrame(root, locale), at: path };
    const page = renderPage({
      kind: isInConsole ? 'console' : 'public',
      title: text.title,
      breadcrumb: null,
      view,
      data: {
        ...text,
        link: PUBLIC_ROUTES.test(path) ? null : link,
        number: t.requestNumber({ id: request.requestId }),
      },
      frame,
      at,
    });
    void reply.status(text.status).send(setPageHeaders(reply, page));
  }
}

function buildPublicLink(
  path: string,
  { start, documentation }: Translations['errorPage'],
): NonNullable<ErrorView['link']> {
  return DOCS_ROUTES.test(path)
    ? { path: '/docs', text: documentation }
    : { path: '/', text: start };
}

/** Builds the link back. The session is unknown when the limit, the route or the database failed first. */
function buildConsoleLink(
  { signedIn, store }: ConsoleRequest,
  { console: { stores, errors }, errorPage: { start } }: Translations,
): ErrorView['link'] {
  if (store)
    return { path: `/app/stores/${store.id}`, text: errors.toStore({ store: store.name }) };
  return { path: '/app', text: signedIn ? stores : start };
}

const MEDIA_TYPES = ['application/json', 'application/problem+json', 'text/html'];

/** Tells whether the client prefers HTML. Programs without an Accept header get JSON. */
export function prefersPage(request: FastifyRequest, reply: FastifyReply): boolean {
  return negotiateMediaType(request, reply, MEDIA_TYPES) === 'text/html';
}

type ErrorText = Pick<ErrorView, 'status' | 'title' | 'text'>;

function describeError(
  error: unknown,
  response: ErrorResponse,
  t: Translations['errorPage'],
  locale: string,
  isChange: boolean,
): ErrorText {
  // What fails may be the page that follows a change which is saved.
  const explainOutage = (why: string) => `${why} ${isChange ? t.checkBeforeSending : t.tryAgain}`;
  if (error instanceof PageError) return error;
  if (error instanceof UnknownOutcomeError) {
    return { status: 503, title: t.unsettled, text: t.unsettledWhy };
  }
  const { status } = response;
  if (error instanceof MaintenanceError) {
    return { status, title: t.maintenance, text: t.maintenanceWhy };
  }
  if (error instanceof EventStoreUnavailableError) {
    return { status, title: t.historyUnavailable, text: explainOutage(t.historyUnavailableWhy) };
  }
  if (error instanceof DamagedHistoryError) {
    return { status, title: t.historyDamaged, text: t.historyDamagedWhy };
  }
  if (error instanceof InProgressError) {
    return { status, title: t.stillRunning, text: t.stillRunningWhy };
  }
  if (status === 404 || status === 405) {
    return { status, title: t.notFound, text: t.notFoundWhy };
  }
  if (status === 403) return { status, title: t.forbidden, text: t.forbiddenWhy };
  if (status === 429) {
    const seconds = new Intl.NumberFormat(locale, {
      style: 'unit',
      unit: 'second',
      unitDisplay: 'long',
    });
    const text = t.tooManyWhy({ wait: seconds.format(response.retryAfterSeconds ?? 60) });
    return { status, title: t.tooMany, text };
  }
  if (status === 503)
    return { status, title: t.unavailable, text: explainOutage(t.unavailableWhy) };
  if (status >= 500) return { status, title: t.broken, text: t.brokenWhy };
  return { status, title: t.refused, text: t.refusedWhy };
}
