import { applyDecorators } from '@nestjs/common';
import type * as Swagger from '@nestjs/swagger';

type Decorator = Parameters<typeof applyDecorators>[number];

/**
 * What only the OpenAPI document needs to know of controllers and DTO classes. It is put aside until the document is
 * made: @nestjs/swagger takes megabytes, and no process that serves needs it.
 */
const putAside: ((swagger: typeof Swagger) => void)[] = [];

/** Decorators of @nestjs/swagger, applied once the document is made. */
export function documented(
  decorators: (swagger: typeof Swagger) => Decorator[],
): ReturnType<typeof applyDecorators> {
  return (target, propertyKey, descriptor) => {
    putAside.push((swagger) =>
      applyDecorators(...decorators(swagger))(target, propertyKey, descriptor),
    );
  };
}

/** Applies what has been put aside, in the order in which it was declared. */
export function documentWith(swagger: typeof Swagger): void {
  for (const apply of putAside.splice(0)) apply(swagger);
}
