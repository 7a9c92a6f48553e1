import { Injectable } from '@nestjs/common';
import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import { getBodyKind, uploadedFiles, type Form } from '#platform/http/body-kinds.js';
import { AccountOwners } from '#platform/event-store/commands/account-owners.service.js';
import { shareDatabase } from '#platform/http/database-share.js';
import { parsePathId, getPath, getRoute } from '#platform/http/path.js';
import { isAllowed, limitRole, type Operation } from '#identity/roles.js';
import {
  TASK_PATHS,
  type ConsoleRequest,
  type ConsoleRoute,
  type EnteredStore,
  type SignedInUser,
} from './current-user.js';
import { hasSecret, KEPT_FORM_FIELD, pickKeptFields, type KeptForm } from './kept-form.js';
import { KeptForms } from './kept-forms.service.js';
import { localizeRequest } from './localize.js';
import { getRootPath } from './page.js';
import { assertOwnSite, parseReturnPath, toReturnQuery } from './own-site.js';
import { PageError } from './page-error.js';
import { passKeptFormOn } from './page-results.js';
import { parseCsrfUser, SESSION_COOKIE, Sessions } from '#identity/sessions.service.js';
import { Cookies } from './cookies.js';

const STORE = {
  name: 'console_store',
  text: `select a.id, a.name, m.role
         from memberships m join accounts a on a.id = m.account_id
         where m.user_id = $1 and m.account_id = $2`,
};
const SAFE_METHODS = new Set(['GET', 'HEAD']);
/** The limit for forms that need a session. */
const MAX_FORM_BYTES = 64 * 1024;
/** The limit for forms that are read although their session has ended: pictures fit, other files do not. */
const MAX_KEPT_BYTES = 3 * 1024 * 1024;

/**
 * Guards every route below /app and /counter. It checks the session, the store of the path and the role before a body is
 * read, and the origin and the CSRF token before a form is accepted. The session of a counter reaches the counter of its
 * store alone, as staff (ADR-0139).
 */
@Injectable()
export class ConsoleGuard {
  private readonly cookies: Cookies;
  private readonly root: string;

  constructor(
    private readonly pool: Pool,
    private readonly sessions: Sessions,
    private readonly keptForms: KeptForms,
    private readonly owners: AccountOwners,
    private readonly config: Config,
  ) {
    this.cookies = new Cookies(config.publicUrl);
    this.root = getRootPath(config);
  }

  /** Adds the guard to every route; call it before the first one is registered. */
  install(server: FastifyInstance): void {
    server.addHook('onRoute', (route) => {
      if (!isConsolePath(route.url)) return;
      const routeOptions = (route.config ?? {}) as ConsoleRoute;
      if (route.url.includes('/:account_id') && routeOptions.operation === undefined) {
        throw new Error(`${route.url} is a page of a store and needs an operation`);
      }
      if (!routeOptions.withoutSession) route.bodyLimit ??= MAX_FORM_BYTES;
      route.onRequest = [
        ...[route.onRequest ?? []].flat(),
        async (request, reply) => this.admit(request as ConsoleRequest, reply, routeOptions),
      ];
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        async (request, reply) => {
          // Forms without a session gain nothing from the session of somebody else.
          if (routeOptions.withoutSession) return undefined;
          return this.checkForm(request as ConsoleRequest, reply, routeOptions);
        },
      ];
    });
  }

  private async admit(
    request: ConsoleRequest,
    reply: FastifyReply,
    route: ConsoleRoute,
  ): Promise<FastifyReply | undefined> {
    const { operation, withoutSession } = route;
    if (!SAFE_METHODS.has(request.method)) assertOwnSite(request, this.config.publicUrl);
    const cookie = this.cookies.read(request, SESSION_COOKIE);
    const signedIn = cookie === undefined ? undefined : await this.sessions.find(cookie);
    const isOpen = signedIn && (signedIn.counterAccountId === null || isOpenToCounter(request));
    const task = isOpen ? signedIn.task : null;
    if (isOpen && (task === null || isTaskRoute(request, TASK_PATHS[task]))) {
      request.signedIn = signedIn;
      request.sessionIds = { user_id: signedIn.userId };
    } else {
      if (task !== null) request.task = task;
      if (!withoutSession) {
        if (!isKeepable(request, route)) return this.redirectToSignIn(request, reply);
        request.isFormKept = true;
        return undefined;
      }
    }
    return operation === undefined ? undefined : this.admitToStore(request, reply, operation);
  }

  /** Admits the user to the store of the path. @throws NotFoundError also without a membership, PageError */
  private async admitToStore(
    request: ConsoleRequest,
    reply: FastifyReply,
    operation: Operation,
  ): Promise<FastifyReply | undefined> {
    const { signedIn, params } = request;
    if (!signedIn) throw new Error('a page without a session must not have an operation');
    const { account_id } = params as { account_id?: string };
    if (account_id === undefined) return undefined;
    const { counterAccountId } = signedIn;
    const membership = await this.findStore(signedIn.userId, parsePathId(account_id));
    if (!membership || (counterAccountId !== null && counterAccountId !== membership.id)) {
      if (isAboutOwnRole(request)) return reply.redirect(`${this.root}/app`, 303);
      throw new NotFoundError('Store');
    }
    const store =
      counterAccountId === null
        ? membership
        : { ...membership, role: limitRole(membership.role, 'staff') };
    request.accountId = store.id;
    shareDatabase(request, await this.owners.find(store.id));
    // The page of a denial has the menu of the store too.
    request.store = store;
    if (!isAllowed(store.role, operation)) {
      request.denial = 'role';
      if (isAboutOwnRole(request)) {
        return reply.redirect(`${this.root}/app/stores/${store.id}`, 303);
      }
      const { errors } = localizeRequest(request).t.console;
      throw new PageError(403, errors.forbidden, errors.forbiddenWhy);
    }
    return undefined;
  }

  private async findStore(userId: number, accountId: number): Promise<EnteredStore | undefined> {
    const values = [userId, accountId];
    const [store] = await query<EnteredStore>(this.pool, { ...STORE, values });
    return store;
  }

  private redirectToSignIn(request: ConsoleRequest, reply: FastifyReply): FastifyReply {
    reply.header('cache-control', 'no-store');
    if (request.task) return reply.redirect(this.root + TASK_PATHS[request.task], 303);
    // A form cannot be repeated after signing in; its page can.
    const returnPath = SAFE_METHODS.has(request.method)
      ? getPathAndQuery(request.url)
      : this.findFormPage(request);
    return reply.redirect(`${this.root}/app/sign-in${toReturnQuery(returnPath)}`, 303);
  }

  /** Finds the page that a form stands on, by what browsers say about it. @returns `/app` when they do not */
  private findFormPage({ headers: { referer = '' } }: ConsoleRequest): string {
    const { origin } = new URL(this.config.publicUrl);
    const start = origin + this.root;
    return referer.startsWith(`${start}/`)
      ? parseReturnPath(referer.slice(start.length).split('#')[0])
      : '/app';
  }

  /** Checks the token of a form. One whose session has ended is kept, and shown again once its user has signed in. */
  private checkForm(
    request: ConsoleRequest,
    reply: FastifyReply,
    route: ConsoleRoute,
  ): FastifyReply | undefined {
    const { method, signedIn } = request;
    if (SAFE_METHODS.has(method)) return undefined;
    const fields = (request.body ?? {}) as Form;
    // Scripts that send JSON have it in a header, which other sites cannot set.
    const token = String(fields['_csrf'] ?? request.headers['x-csrf-token'] ?? '');
    const form = {
      path: getPathAndQuery(request.url),
      fields,
      isUpload: getBodyKind(request) === 'upload',
      hadFile: hasUploadedFile(request),
      hadSecret: hasSecret(fields),
    };
    if (request.isFormKept) {
      const userId = parseCsrfUser(token);
      // It may be on its way back, and the new session has ended too.
      const sealedForm =
        fields[KEPT_FORM_FIELD] ??
        (userId === undefined ? undefined : this.keptForms.seal(form, userId, getNow()));
      if (sealedForm === undefined) return this.redirectToSignIn(request, reply);
      return this.sendToSignIn(request, reply, sealedForm);
    }
    if (!signedIn) return undefined;
    const sealedForm = isKeepable(request, route) ? fields[KEPT_FORM_FIELD] : undefined;
    if (sealedForm !== undefined) {
      const keptForm = this.keptForms.open(sealedForm, signedIn.userId, getNow());
      if (keptForm?.path !== form.path) return reply.redirect(`${this.root}/app`, 303);
      showAgain(request, keptForm, signedIn);
      return undefined;
    }
    const received = Buffer.from(token);
    const expected = Buffer.from(signedIn.csrfToken);
    if (received.length === expected.length && timingSafeEqual(received, expected))
      return undefined;
    // Its page was opened before the user signed in again, in another tab.
    const isOwn = parseCsrfUser(token) === signedIn.userId;
    if (isOwn && isKeepable(request, route) && pickKeptFields(fields)) {
      showAgain(request, form, signedIn);
      return undefined;
    }
    request.denial = 'csrf_token';
    const { errors } = localizeRequest(request).t.console;
    throw new PageError(403, errors.expired, errors.expiredWhy);
  }

  private sendToSignIn(
    request: ConsoleRequest,
    reply: FastifyReply,
    sealedForm: string,
  ): FastifyReply {
    const { forms, signIn } = localizeRequest(request).t;
    const texts = request.task
      ? { title: forms.formKept, button: forms.backToForm }
      : { title: signIn.signIn.title, button: signIn.signIn.submit };
    const page = passKeptFormOn({
      sealedForm,
      action: '/app/sign-in/kept',
      isUpload: false,
      ...texts,
    });
    return reply.send(page.send(request, reply, this.root));
  }
}

/** Tells whether a form that a person has sent comes back after they have signed in again. */
function isKeepable(request: ConsoleRequest, route: ConsoleRoute): boolean {
  const { method, headers } = request;
  const isShownAgain = route.isExecutedOnce === true || route.showsKeptForm === true;
  const isForm = ['form', 'upload'].includes(getBodyKind(request) ?? '');
  // Scripts have their form on their page still.
  const isByPerson = headers.accept?.includes('text/html') === true;
  const isSmall = Number(headers['content-length'] ?? Infinity) <= MAX_KEPT_BYTES;
  return method === 'POST' && isShownAgain && isForm && isByPerson && isSmall;
}

/** Takes the fields of a kept form for those of the request. */
function showAgain(
  request: ConsoleRequest,
  { fields, hadFile, hadSecret }: KeptForm,
  { csrfToken }: SignedInUser,
): void {
  request.keptForm = { hadFile, hadSecret };
  request.body = { ...pickKeptFields(fields), _csrf: csrfToken, form_key: createId() };
  uploadedFiles.delete(request);
}

function hasUploadedFile(request: ConsoleRequest): boolean {
  return [...(uploadedFiles.get(request)?.values() ?? [])].some((bytes) => bytes.length > 0);
}

export function isConsolePath(path: string): boolean {
  return path === '/app' || path.startsWith('/app/') || isCounterPath(path);
}

function isCounterPath(path: string): boolean {
  return path === '/counter' || path.startsWith('/counter/');
}

/** Tells whether the session of a counter may open the route; it may also be ended. */
function isOpenToCounter(request: ConsoleRequest): boolean {
  const route = getRoute(request);
  return isCounterPath(route) || route === '/app/sign-out';
}

/** Tells whether a user may open the route who has to do something else first: that page, or signing out. */
function isTaskRoute(request: ConsoleRequest, taskPath: string): boolean {
  const route = getRoute(request);
  return route === taskPath || route.startsWith(`${taskPath}/`) || route === '/app/sign-out';
}

/** Tells whether a form is about the role of its user, which has gone when the form that gave it up is sent again. */
function isAboutOwnRole(request: ConsoleRequest): boolean {
  const { id } = request.params as { id?: string };
  const isOwn = id === String(request.signedIn?.userId);
  const route = getRoute(request);
  return (
    isOwn && request.method === 'POST' && route.startsWith('/app/stores/:account_id/users/:id/')
  );
}

function getPathAndQuery(url: string): string {
  const path = getPath(url);
  const at = url.indexOf('?');
  return at < 0 ? path : path + url.slice(at);
}
