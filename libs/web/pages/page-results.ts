import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#configuration/config.js';
import { isApiRoute } from '#platform/http/path.js';
import { loadAsset } from './assets.js';
import { createConsoleFrame } from './console-frame.js';
import type { ConsoleRequest } from './current-user.js';
import type { Rejectable } from './form-errors.js';
import type { Inputs } from './forms.js';
import { getRootPath, renderPage, setPageHeaders, type Colors, type PageExtras } from './page.js';
import { createPlainFrame, loadView, type View } from './view.js';

/** Holds the response of a handler until the hook of `installPageResults` sends it. */
export class PageResult {
  /** @param send sets status and headers, and returns the body */
  constructor(
    readonly send: (request: FastifyRequest, reply: FastifyReply, root: string) => string,
  ) {}
}

export type ConsolePage<D extends object> = PageExtras &
  Rejectable & {
    view: View<D>;
    title: string;
    data: D;
    /** What the fields of its form show, unless its view says otherwise. */
    inputs?: Inputs;
    /** The default is 422 with errors, and 200 without. */
    status?: number;
    /** Of a page in one language only; the default is that of the browser, for which its texts are. */
    lang?: string;
  };

export type PublicPage<D extends object> = ConsolePage<D> & {
  /** A BCP 47 tag. */
  lang: string;
  /** The colours of the store; the default is Inkpad's. */
  colors?: Colors;
  /** The colours of a card on the page. */
  cardColors?: Colors;
};

/** Describes a question before an action that cannot be undone. The form is sent to the path of the question. */
export type Confirmation = {
  question: string;
  /** The name of the affected person or thing. */
  about: string;
  /** The consequences. */
  text: string;
  /** The label of the button that does it, and of the link that does not. */
  yes: string;
  no: string;
  fields?: Readonly<Record<string, string>>;
  /** The errors of the password that it asks for; null: it asks for none. */
  passwordErrors?: readonly string[] | null;
  /** From the root of the service. */
  back: string;
  /** Whether the button warns of a loss, which it does unless this is false. */
  isLoss?: boolean;
};

/** What its user has to do first, in another tab. */
type KeptFormTask = { path: string; text: string; button: string };
const keptFormView = loadView<{
  title: string;
  sealedForm: string;
  action: string;
  isUpload: boolean;
  button: string;
  task?: KeptFormTask;
}>(import.meta.url, './views/kept-form.eta');
const KEPT_FORM_SCRIPT = loadAsset(import.meta.url, './assets/kept-form.js');
const confirmView = loadView<Required<Confirmation>>(import.meta.url, './views/confirm.eta');

/** Shows a page of the console in the browser's language, with the store and the menu of the request. */
export function showPage<D extends object>({
  errors = null,
  status = errors ? 422 : 200,
  inputs = {},
  lang,
  ...page
}: ConsolePage<D>): PageResult {
  return new PageResult((request, reply, root) => {
    const { frame, at } = createConsoleFrame(root, request as ConsoleRequest, lang);
    frame.parts.inputs = inputs;
    if (errors) frame.parts.addRejection(errors);
    const rendered = renderPage({ kind: 'console', frame, at, ...page });
    // The form was not rejected: it is shown before it is executed.
    const { keptForm } = request as ConsoleRequest;
    return setPageHeaders(reply.status(keptForm ? 200 : status), rendered);
  });
}

/** Asks for confirmation on a page of its own, which works without a script. The focus is on the harmless link. */
export function askToConfirm(confirmation: Confirmation): PageResult {
  const data = { fields: {}, passwordErrors: null, isLoss: true, ...confirmation };
  return showPage({
    view: confirmView,
    title: confirmation.question,
    data,
    status: data.passwordErrors?.length ? 422 : 200,
    width: 'form',
  });
}

/**
 * Passes a kept form on: to the sign-in, and from there to where it is sent. A script does so at once, unless its user has
 * something else to do first.
 * @param action from the root of the service
 */
export function passKeptFormOn(form: {
  sealedForm: string;
  action: string;
  isUpload: boolean;
  button: string;
  title: string;
  task?: KeptFormTask;
}): PageResult {
  return showPage({
    view: keptFormView,
    title: form.title,
    data: form,
    scripts: form.task ? [] : [KEPT_FORM_SCRIPT],
    width: 'narrow',
  });
}

/** Shows a page that needs no session, in the language and colours of a store. */
export function showPublicPage<D extends object>({
  errors = null,
  status = errors ? 422 : 200,
  lang,
  ...page
}: PublicPage<D>): PageResult {
  return new PageResult((_request, reply, root) => {
    const frame = createPlainFrame(root, lang);
    if (errors) frame.parts.addRejection(errors);
    const rendered = renderPage({ kind: 'public', frame, ...page });
    return setPageHeaders(reply.status(status), rendered);
  });
}

/** Redirects after a form. @param path from the root of the service, such as `/app/account?done=saved` */
export function redirectTo(path: string): PageResult {
  return new PageResult((_request, reply, root) => redirect(reply, root + path, 303));
}

/** Redirects to an address with its host. */
export function redirectToUrl(url: string, status: 302 | 303 = 303): PageResult {
  return new PageResult((_request, reply) => redirect(reply, url, status));
}

function redirect(reply: FastifyReply, location: string, status: 302 | 303): string {
  reply.removeHeader('content-type').status(status);
  reply.headers({ 'cache-control': 'no-store', location });
  return '';
}

/** Shows a script of a page what it has asked for. */
export function showJson(body: object, status = 200): PageResult {
  return new PageResult((_request, reply) => {
    reply.status(status).header('cache-control', 'no-store');
    return JSON.stringify(body);
  });
}

/**
 * Sends what handlers of pages return. Call it before the first route is registered.
 * A hook, so that an error of a view gets its error page, and routes of the API have nothing more to do (ADR-0062).
 */
export function installPageResults(server: FastifyInstance, config: Config): void {
  const root = getRootPath(config);
  server.addHook('onRoute', (route) => {
    if (isApiRoute(route.url)) return;
    route.preSerialization = [
      ...[route.preSerialization ?? []].flat(),
      (request, reply, payload, done) => {
        if (!(payload instanceof PageResult)) return done(null, payload);
        try {
          reply.serializer(keep);
          done(null, payload.send(request, reply, root));
        } catch (error) {
          done(error as Error);
        }
      },
    ];
  });
}

function keep(text: unknown): string {
  return text as string;
}
