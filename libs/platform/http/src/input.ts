import type { Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { ModuleRef } from '@nestjs/core';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidFieldsError, type FieldErrors } from '#kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { hasDate, readBody, readQuery } from './dtos.js';
import { requireRecord } from './record.js';
import { getRouteConfig, setRouteConfig } from './route-config.js';
import { toUnknownErrors, type UnknownInput } from './unknown-fields.js';

/** Classes that a route reads, in its config because hooks do not know the handler. */
type InputTypes = { query: Type | null; body: Type | null };

/** @property refused unknown input that the caller wants to be refused */
export type CheckedRequest = AuthenticatedRequest & { refused?: UnknownInput };

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
      const key = Object.keys(parameters).find((one) => one.startsWith(`${kind}:`));
      return (key === undefined ? undefined : types[parameters[key]?.index ?? -1]) ?? null;
    };
    const inputTypes: InputTypes = {
      query: typeOf(RouteParamtypes.QUERY),
      body: typeOf(RouteParamtypes.BODY),
    };
    setRouteConfig({ takes: inputTypes })(target, name, descriptor);
  };
}

/** Finds the classes that a request is read as. */
export function getInputTypes(request: FastifyRequest): InputTypes | undefined {
  return getRouteConfig<{ takes?: InputTypes }>(request).takes;
}

/**
 * Replaces the query and body of a request with the objects that its handler takes. A hook and not a pipe of Nest, which
 * would pass every parameter of a handler through four promises. A date in place of a time is read in the account's time
 * zone (CONV-60), which is looked up only then; requests without an account use UTC. A missing record (404) is reported
 * before field errors (422).
 */
export function readInput(
  server: FastifyInstance,
  timeZones: AccountTimeZones,
  modules: ModuleRef,
): void {
  server.addHook('preHandler', (plain, _reply, done) => {
    const request = plain as CheckedRequest;
    const inputTypes = getInputTypes(request);
    if (!inputTypes) return done();
    const fail = (reason: Error) => {
      if (!(reason instanceof InvalidFieldsError)) return done(reason);
      requireRecord(request, modules).then(() => done(reason), done);
    };
    const { accountId } = request;
    if (accountId !== undefined && hasDates(request, inputTypes)) {
      timeZones
        .getTimeZone(accountId)
        .then((timeZone) => parseInput(request, inputTypes, timeZone))
        .then(() => done(), fail);
      return;
    }
    try {
      parseInput(request, inputTypes);
    } catch (error) {
      return fail(error as Error);
    }
    done();
  });
}

function hasDates({ query, body }: FastifyRequest, inputTypes: InputTypes): boolean {
  return (
    (inputTypes.query !== null && hasDate(inputTypes.query, query)) ||
    (inputTypes.body !== null && hasDate(inputTypes.body, body))
  );
}

/** @throws InvalidFieldsError */
function parseInput(request: CheckedRequest, { query, body }: InputTypes, timeZone?: string): void {
  const readers = [
    () => query && (request.query = readQuery(query, request.query, timeZone)),
    () => body && (request.body = readBody(body, request.body, timeZone)),
  ];
  const { refused } = request;
  if (!refused) return readers.forEach((read) => read());
  const errors = toUnknownErrors(refused, body);
  for (const [field, messages] of readers.map(collectErrors).flatMap(Object.entries<string[]>)) {
    errors.set(field, [...(errors.get(field) ?? []), ...messages]);
  }
  throw new InvalidFieldsError(Object.fromEntries(errors));
}

function collectErrors(read: () => unknown): FieldErrors {
  try {
    read();
    return {};
  } catch (error) {
    if (error instanceof InvalidFieldsError) return error.errors;
    throw error;
  }
}
