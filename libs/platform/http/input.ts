import type { Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { ModuleRef } from '@nestjs/core';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  preHandlerHookHandler,
  preValidationHookHandler,
} from 'fastify';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { getFields, type Reading } from './dtos.js';
import { requireRecord } from './record.js';
import { setRouteConfig } from './route-config.js';
import {
  findUnknownInput,
  renderNames,
  suggestNames,
  toUnknownErrors,
  type UnknownInput,
} from './unknown-fields.js';

/** Classes that a route reads, in its config because hooks do not know the handler. */
type InputTypes = { query: Type | null; body: Type | null };

/**
 * @property query of a route without one nothing
 * @property refused unknown input that the caller wants to be refused
 */
type Input = { query: Reading; body: Reading | undefined; refused?: UnknownInput };

type ReadRequest = AuthenticatedRequest & { input?: Input };

/** Finds the time zone of an account. The module of accounts implements it. */
export abstract class AccountTimeZones {
  /** @throws NotFoundError */
  abstract getTimeZone(accountId: number): Promise<string>;
}

/** Records the classes of a handler's query and body. */
export function recordInputTypes(): MethodDecorator {
  return (target, name, descriptor: PropertyDescriptor) => {
    const types = (Reflect.getMetadata('design:paramtypes', target, name) ?? []) as Type[];
    const parameters = (Reflect.getMetadata(ROUTE_ARGS_METADATA, target.constructor, name) ??
      {}) as Record<string, { index: number }>;
    const typeOf = (kind: RouteParamtypes) => {
      const key = Object.keys(parameters).find((parameter) => parameter.startsWith(`${kind}:`));
      return (key === undefined ? undefined : types[parameters[key]?.index ?? -1]) ?? null;
    };
    const inputTypes: InputTypes = {
      query: typeOf(RouteParamtypes.QUERY),
      body: typeOf(RouteParamtypes.BODY),
    };
    setRouteConfig({ takes: inputTypes })(target, name, descriptor);
  };
}

/**
 * Reads the query and body of a request in one pass, as the objects that its handler takes. Hooks and not a pipe of Nest,
 * which would pass every parameter of a handler through four promises.
 *
 * Unknown input is named in a header at once (CONV-41), also of a request whose stored response is replayed (CONV-43);
 * errors count only after that. A missing record (404) is reported before them (422). A date in place of a time is read
 * again in the account's time zone (CONV-60), which is looked up only then; requests without an account use UTC.
 */
export function readInput(
  server: FastifyInstance,
  timeZones: AccountTimeZones,
  modules: ModuleRef,
): void {
  server.addHook('onRoute', (route) => {
    const { takes } = (route.config ?? {}) as { takes?: InputTypes };
    if (!takes) return;
    const queryFields = getFields(takes.query);
    const bodyFields = takes.body && getFields(takes.body);
    const parse = ({ query, body }: FastifyRequest, timeZone?: string): Input => ({
      query: queryFields.readQuery(query, timeZone),
      body: bodyFields?.readBody(body, timeZone),
    });
    const parseInput: preValidationHookHandler = (request, reply, done) => {
      const input = parse(request);
      (request as ReadRequest).input = input;
      const { query, body } = input;
      const hasUnread = query.hasUnread || (body ? body.hasUnread : request.body !== undefined);
      const errors = query.errors ?? body?.errors;
      // To name what is unknown takes another pass.
      if (hasUnread || errors || request.headers.prefer !== undefined) {
        reportUnknown(request, reply, takes, input);
      }
      done();
    };
    const assertInput: preHandlerHookHandler = (plain, _reply, done) => {
      const request = plain as ReadRequest;
      const { input, accountId } = request;
      if (!input) return done();
      const fail = (reason: Error) => {
        if (!(reason instanceof InvalidFieldsError)) return done(reason);
        requireRecord(request, modules).then(() => done(reason), done);
      };
      if (accountId !== undefined && (input.query.hasDate || input.body?.hasDate)) {
        timeZones
          .getTimeZone(accountId)
          .then((timeZone) => takeInput(request, takes, { ...input, ...parse(request, timeZone) }))
          .then(() => done(), fail);
        return;
      }
      try {
        takeInput(request, takes, input);
      } catch (error) {
        return fail(error as Error);
      }
      done();
    };
    route.preValidation = [route.preValidation ?? []].flat().concat(parseInput);
    route.preHandler = [route.preHandler ?? []].flat().concat(assertInput);
  });
}

/** @throws InvalidFieldsError */
function takeInput(request: FastifyRequest, takes: InputTypes, { query, body, refused }: Input) {
  if (refused) {
    const errors = toUnknownErrors(refused, takes.body);
    const others = [query, body].flatMap((part) => Object.entries(part?.errors ?? {}));
    for (const [field, issues] of others) {
      errors.set(field, [...(errors.get(field) ?? []), ...issues]);
    }
    throw new InvalidFieldsError(
      Object.fromEntries(errors),
      'validation_failed',
      suggestNames(refused, takes),
    );
  }
  const errors = query.errors ?? body?.errors;
  if (errors) throw new InvalidFieldsError(errors);
  if (takes.query) request.query = query.value;
  if (body) request.body = body.value;
}

/**
 * Names unknown input in a header; otherwise the request is processed without it, unless the caller prefers that it is
 * refused (`Prefer: handling=strict`, CONV-46).
 */
function reportUnknown(
  request: FastifyRequest,
  reply: FastifyReply,
  takes: InputTypes,
  input: Input,
): void {
  const isRefused = isStrict(request);
  if (isRefused) reply.header('preference-applied', 'handling=strict');
  const unknown = findUnknownInput(takes, request);
  if (!unknown) return;
  if (isRefused) input.refused = unknown;
  reply.header('x-unknown-parameters', renderNames(unknown));
}

/**
 * Tells whether strict handling is preferred (RFC 7240). The first preference of a name counts; names and values
 * ignore case.
 */
function isStrict({ headers }: FastifyRequest): boolean {
  const preferences = [headers.prefer ?? '']
    .flat()
    .join(',')
    // A quoted value may hold what separates preferences.
    .replaceAll(/"([^"]*)"/g, (_, quoted: string) => quoted.replaceAll(/[,;=]/g, ''))
    .toLowerCase()
    .split(',')
    .map((preference) => (preference.split(';', 1)[0] ?? '').split('='));
  const [, handling] = preferences.find(([name]) => name?.trim() === 'handling') ?? [];
  return handling?.trim() === 'strict';
}
