import { applyDecorators } from '@nestjs/common';
import type * as Swagger from '@nestjs/swagger';

type Decorator = Parameters<typeof applyDecorators>[number];

/**
 * What only the OpenAPI document needs to know of controllers and DTO classes. It is put aside until the document is
 * made: @nestjs/swagger takes megabytes, and no process that serves needs it.
 */
const deferred: ((swagger: typeof Swagger) => void)[] = [];

/** Decorators of @nestjs/swagger, applied once the document is made. */
export function deferSwaggerDecorators(
  decorators: (swagger: typeof Swagger) => Decorator[],
): ReturnType<typeof applyDecorators> {
  return (target, propertyKey, descriptor) => {
    deferred.push((swagger) =>
      applyDecorators(...decorators(swagger))(target, propertyKey, descriptor),
    );
  };
}

/** Applies what has been put aside, in the order in which it was declared. */
export function applySwaggerDecorators(swagger: typeof Swagger): void {
  for (const apply of deferred.splice(0)) apply(swagger);
}
