import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { ModuleRef, Reflector } from '@nestjs/core';
import { catchError, from, mergeMap, throwError, type Observable } from 'rxjs';
import { InvalidFieldsError } from '#kernel/errors.js';
import type { GatedRequest } from './caller.js';

/** Metadata of a route: its RecordLookup. */
export const RECORD = 'inkpad:record';

/** Throws NotFoundError when the record of a path is not there. */
export type RecordLookup = (
  modules: ModuleRef,
  accountId: number,
  path: Record<string, string>,
) => Promise<unknown>;

/** @param find what throws NotFoundError */
export function recordOf<S>(
  service: Type<S>,
  find: (service: S, accountId: number, path: Record<string, string>) => Promise<unknown>,
): RecordLookup {
  return (modules, accountId, path) =>
    find(modules.get(service, { strict: false }), accountId, path);
}

/**
 * The order of checks (contract section 1): a missing record (404) is reported before field errors (422). It
 * is looked up only when there are such errors, since commands look it up themselves.
 */
@Injectable()
export class RecordInterceptor implements NestInterceptor {
  constructor(
    private readonly modules: ModuleRef,
    private readonly reflector: Reflector,
  ) {}

  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      catchError((error: unknown) => {
        if (!(error instanceof InvalidFieldsError)) return throwError(() => error);
        return from(this.lookUp(execution)).pipe(mergeMap(() => throwError(() => error)));
      }),
    );
  }

  private async lookUp(execution: ExecutionContext): Promise<void> {
    const lookUp = this.reflector.get<RecordLookup>(RECORD, execution.getHandler());
    const { accountId, params } = execution.switchToHttp().getRequest<GatedRequest>();
    if (accountId === undefined) throw new Error('the route names no store');
    await lookUp(this.modules, accountId, params as Record<string, string>);
  }
}
