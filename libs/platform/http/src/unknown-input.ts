import type { Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { ModuleRef } from '@nestjs/core';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidFieldsError, type FieldErrors } from '#kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { readBody, readQuery } from './fields.pipe.js';
import { requireRecord } from './record.js';
import { setRouteConfig } from './route-config.js';
import {
  renderNames,
  toUnknownErrors,
  findUnknownInput,
  type UnknownInput,
} from './unknown-fields.js';

/** Classes that a route reads, in its config because hooks do not know the handler. */
type InputTypes = { query: Type | null; body: Type | null };

type CheckedRequest = AuthenticatedRequest & { unknown?: UnknownInput };

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

/**
 * Names unknown input in a header (CONV-41); otherwise the request is processed without it. Runs before stored
 * responses are replayed, since they name it too (CONV-43).
 */
export function reportUnknownInput(server: FastifyInstance): void {
  server.addHook('preValidation', (request, reply, done) => {
    const inputTypes = getInputTypes(request);
    if (!inputTypes) return done();
    if (isStrict(request)) reply.header('preference-applied', 'handling=strict');
    const unknown = findUnknownInput(inputTypes, request);
    if (unknown) {
      (request as CheckedRequest).unknown = unknown;
      reply.header('x-unknown-parameters', renderNames(unknown));
    }
    done();
  });
}

/**
 * Rejects unknown input under `Prefer: handling=strict` (CONV-46), in the order of all checks: the record first, then
 * all fields at once.
 */
export function refuseUnknownInput(server: FastifyInstance, modules: ModuleRef): void {
  server.addHook('preHandler', (plain, _reply, done) => {
    const request = plain as CheckedRequest;
    const { unknown } = request;
    const inputTypes = getInputTypes(request);
    if (!unknown || !inputTypes || !isStrict(request)) return done();
    refuse(request, inputTypes, unknown, modules).then(() => done(), done);
  });
}

/** @throws InvalidFieldsError, NotFoundError */
async function refuse(
  request: CheckedRequest,
  inputTypes: InputTypes,
  unknown: UnknownInput,
  modules: ModuleRef,
): Promise<never> {
  await requireRecord(request, modules);
  const { query, body } = request;
  const errors = toUnknownErrors(unknown, inputTypes.body);
  const others = [
    collectErrors(() => inputTypes.query && readQuery(inputTypes.query, query)),
    collectErrors(() => inputTypes.body && readBody(inputTypes.body, body)),
  ];
  for (const [field, messages] of others.flatMap(Object.entries<string[]>)) {
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

/** Finds the classes that a request is read as. */
export function getInputTypes({ routeOptions }: FastifyRequest): InputTypes | undefined {
  return (routeOptions.config as { takes?: InputTypes }).takes;
}

/**
 * Tells whether strict handling is preferred (RFC 7240). The first preference of a name counts; names and values
 * ignore case.
 */
function isStrict({ headers }: FastifyRequest): boolean {
  const { prefer } = headers;
  if (prefer === undefined) return false;
  const preferences = [prefer]
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
