import { NotFoundException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CatalogueError } from '#platform/kernel/errors.js';
import { getPath, getRoute } from './path.js';

/**
 * Responds to OPTIONS with the methods of a path, to other methods with 405, and to a path that does not exist with
 * 404, without reading its body.
 * @returns whether there is a response now
 */
export function respondToMethod(
  routes: RouteTable,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const isOptions = request.method === 'OPTIONS';
  const { is404 } = request;
  const allowed = routes.findMethods(is404 ? getRoute(request) : decodeURI(getPath(request.url)));
  if (allowed.length === 0) {
    if (is404) throw new NotFoundException();
    return false;
  }
  if (!isOptions && !is404 && allowed.includes(request.method)) return false;
  reply.header('allow', allowed.join(', '));
  if (!isOptions) {
    const values = { method: request.method, allowed: allowed.join(', ') };
    throw new CatalogueError('method_not_allowed', undefined, { values });
  }
  void reply.status(204).send();
  return true;
}

/** Lists the routes of a path; the router finds only the one that handles a request. */
export class RouteTable {
  private readonly routes: { segments: string[]; method: string }[] = [];

  add(pattern: string, method: string): void {
    if (pattern === '*') return;
    this.routes.push({ segments: splitPath(pattern), method });
  }

  /**
   * Tells whether some paths of a pattern have a pattern of their own, as `/things/:id` and `/things/preview`. The router
   * gives them to the former for a method that only the former has.
   */
  isAmbiguous(pattern: string): boolean {
    const own = splitPath(pattern);
    return this.routes.some(
      ({ segments }) => matches(own, segments) && compareSegments(segments, own) < 0,
    );
  }

  /**
   * Finds the methods of a path: of its most specific pattern, where several match.
   * @returns sorted, with OPTIONS; none for a path that does not exist
   */
  findMethods(path: string): string[] {
    const pathSegments = splitPath(path);
    const matching = this.routes
      .filter(({ segments }) => matches(segments, pathSegments))
      .sort((a, b) => compareSegments(a.segments, b.segments));
    const [best] = matching;
    const methods = matching
      .filter(({ segments }) => best && compareSegments(segments, best.segments) === 0)
      .map(({ method }) => method);
    return methods.length === 0 ? [] : [...new Set([...methods, 'OPTIONS'])].sort();
  }
}

function splitPath(path: string): string[] {
  return path.replace(/(?<=.)\/$/, '').split('/');
}

function matches(pattern: string[], path: string[]): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((segment, i) => (isParameter(segment) ? path[i] !== '' : segment === path[i]))
  );
}

/** Compares patterns of the same path: one with text where the other has a parameter comes first. */
function compareSegments(a: string[], b: string[]): number {
  const i = a.findIndex((segment, at) => isParameter(segment) !== isParameter(b[at] ?? ''));
  if (i === -1) return 0;
  return isParameter(a[i] ?? '') ? 1 : -1;
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':');
}
