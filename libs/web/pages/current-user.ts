import {
  applyDecorators,
  createParamDecorator,
  Get,
  Post,
  type ExecutionContext,
} from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { readSource, type AuthenticatedRequest } from '#platform/http/caller.js';
import type { SignedInUser } from '#identity/sessions.service.js';
import { TakesForm, TakesUpload } from '#platform/http/body-kinds.js';
import { setRouteConfig } from '#platform/http/route-config.js';
import { Throttle } from '#platform/http/throttle.js';
import type { Operation, Role } from '#identity/roles.js';
import { KeptFormError, type KeptForm } from './kept-form.js';
import { localizeRequest } from './localize.js';

export type { SignedInUser };

/** Holds the store of the path, which the user is a member of. */
export type EnteredStore = { id: number; name: string; role: Role };

/** The pages on which users do what they have to do before anything else. */
export const TASK_PATHS = {
  password: '/app/account/first-password',
  second_factor: '/app/account/codes',
} as const;

/** Carries what the guard of the console has found out about the request. */
export type ConsoleRequest = AuthenticatedRequest & {
  signedIn?: SignedInUser;
  store?: EnteredStore;
  /** Set for a user who has to do something else before they open the page. */
  task?: keyof typeof TASK_PATHS;
  /** Set for a form whose user has to sign in, or do that, first: it is kept as soon as its body was read. */
  isFormKept?: boolean;
  /** Set for a form that was kept while its user signed in: its page shows what was entered, and says so. */
  keptForm?: Pick<KeptForm, 'hadFile' | 'hadSecret'>;
};

/**
 * @property isExecutedOnce whether the commands of a form are executed once, however often it is sent
 * @property showsKeptForm whether the handler calls `assertNotKept` before it executes something; where forms are executed
 *   once, `FormCommands` does
 */
export type ConsoleRoute = {
  operation?: Operation;
  withoutSession?: true;
  isExecutedOnce?: boolean;
  showsKeptForm?: boolean;
};

/** Names the operation that the user's role must allow for a page or a form of a store. */
export function RequiresOperation(operation: Operation): MethodDecorator {
  const config: ConsoleRoute = { operation };
  return setRouteConfig(config);
}

/** Declares a page of a store. @param path after that of the controller */
export function GetPage(operation: Operation, path = ''): MethodDecorator {
  return applyDecorators(Get(path), RequiresOperation(operation));
}

/** Declares that a form comes back after an ended session, because its handler calls `assertNotKept`. */
export function ShowsKeptForm(): MethodDecorator {
  const config: ConsoleRoute = { showsKeptForm: true };
  return setRouteConfig(config);
}

/** Asserts that a form was sent by a person, and not to show it again. @throws KeptFormError */
export function assertNotKept(request: FastifyRequest): void {
  if ((request as ConsoleRequest).keptForm) throw new KeptFormError();
}

/** Declares that the commands of a form are executed once, however often it is sent (`FormCommands`). */
export function RunsOnce(): MethodDecorator {
  const config: ConsoleRoute = { isExecutedOnce: true };
  return setRouteConfig(config);
}

/**
 * Declares where a form of a store is sent to that is executed as often as it is sent: a second time changes nothing.
 * @param path after that of the controller
 * @param limit of requests a minute
 */
export function PostRepeatableForm(
  operation: Operation,
  path: string,
  limit: number,
): MethodDecorator {
  return applyDecorators(Post(path), TakesForm(), RequiresOperation(operation), Throttle(limit));
}

/** Declares where a form of a store is sent to. Sent twice, it is executed once. */
export function PostForm(operation: Operation, path = '', limit = 60): MethodDecorator {
  return applyDecorators(PostRepeatableForm(operation, path, limit), RunsOnce());
}

/** Declares where a form with a file is sent to. Sent twice, it is executed once. */
export function PostUpload(
  operation: Operation,
  path: string,
  maxBytes: number,
  limit = 60,
): MethodDecorator {
  return applyDecorators(
    Post(path),
    TakesUpload(maxBytes),
    RequiresOperation(operation),
    Throttle(limit),
    RunsOnce(),
  );
}

/** Opens a page of the console to visitors without a session. */
export function WithoutSession(): MethodDecorator {
  const config: ConsoleRoute = { withoutSession: true };
  return setRouteConfig(config);
}

export const CurrentUser = createParamDecorator((_: unknown, execution: ExecutionContext) =>
  getSignedIn(getConsoleRequest(execution)),
);

export const CurrentStore = createParamDecorator((_: unknown, execution: ExecutionContext) =>
  getStore(getConsoleRequest(execution)),
);

/** Injects the texts in the language that the browser prefers. */
export const Localized = createParamDecorator((_: unknown, execution: ExecutionContext) =>
  localizeRequest(getConsoleRequest(execution)),
);

/** Injects the context of commands about the store of the path. */
export const ConsoleContext = createParamDecorator(
  (_: unknown, execution: ExecutionContext): CommandContext => {
    const request = getConsoleRequest(execution);
    return {
      accountId: getStore(request).id,
      actor: { type: 'user', id: getSignedIn(request).userId },
      channel: 'owner',
      ...readSource(request),
      ...(request.keyed && { keyed: request.keyed }),
    };
  },
);

/** Injects the actor of audited writes. */
export const ConsoleWriter = createParamDecorator(
  (_: unknown, execution: ExecutionContext): AuditedWriter => {
    const request = getConsoleRequest(execution);
    return {
      actor: { type: 'user', id: getSignedIn(request).userId },
      channel: 'owner',
      ...readSource(request),
      ...(request.keyed && { keyed: request.keyed }),
    };
  },
);

function getConsoleRequest(execution: ExecutionContext): ConsoleRequest {
  return execution.switchToHttp().getRequest<ConsoleRequest>();
}

function getSignedIn({ signedIn }: ConsoleRequest): SignedInUser {
  if (!signedIn) throw new Error('a page without a session needs the user');
  return signedIn;
}

function getStore({ store }: ConsoleRequest): EnteredStore {
  if (!store) throw new Error('the path of the page has no store');
  return store;
}
