import { applyDecorators } from '@nestjs/common';
import type * as Swagger from '@nestjs/swagger';

type Decorator = Parameters<typeof applyDecorators>[number];

/**
 * Decorators that only the OpenAPI document needs. They are deferred until it is generated: @nestjs/swagger uses
 * megabytes, and no serving process needs it.
 */
const deferred: ((swagger: typeof Swagger) => void)[] = [];

/** Defers decorators of @nestjs/swagger until the document is generated, which an api never does (ADR-0015). */
export function deferSwaggerDecorators(
  decorators: (swagger: typeof Swagger) => Decorator[],
): ReturnType<typeof applyDecorators> {
  return (target, propertyKey, descriptor) => {
    deferred.push((swagger) =>
      applyDecorators(...decorators(swagger))(target, propertyKey, descriptor),
    );
  };
}

/** Applies the deferred decorators, in the order of their declaration. */
export function applySwaggerDecorators(swagger: typeof Swagger): void {
  for (const apply of deferred.splice(0)) apply(swagger);
}
