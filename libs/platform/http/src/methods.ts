import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { MethodNotAllowedError } from '#kernel/errors.js';
import { getPath, getRoute } from './path.js';

/**
 * Responds to OPTIONS with the methods of a path, to other methods with 405, and to a path that does not exist with
 * 404, without reading its body. Runs after the request guard, so that callers without a token learn nothing.
 */
export function installMethodChecks(server: FastifyInstance): void {
  const routes = new RouteTable();

  server.addHook('onRoute', ({ url, method }) => {
    for (const one of [method].flat()) routes.add(url, one);
  });

  server.addHook('onRequest', (request, reply, done) => {
    const isOptions = request.method === 'OPTIONS';
    const { is404 } = request;
    if (!isOptions && !is404 && !routes.isAmbiguous(request.routeOptions.url ?? '')) return done();
    const allowed = routes.findMethods(is404 ? getRoute(request) : decodeURI(getPath(request.url)));
    if (allowed.length === 0) {
      if (is404) throw new NotFoundException();
      return done();
    }
    if (!isOptions && !is404 && allowed.includes(request.method)) return done();
    reply.header('allow', allowed.join(', '));
    if (!isOptions) throw new MethodNotAllowedError(request.method, allowed);
    void reply.status(204).send();
  });
}

/** Lists the routes of a path; the router finds only the one that handles a request. */
export class RouteTable {
  private readonly routes: { segments: string[]; method: string }[] = [];
  private readonly ambiguous = new Map<string, boolean>();

  add(pattern: string, method: string): void {
    if (pattern === '*') return;
    this.routes.push({ segments: splitPath(pattern), method });
    this.ambiguous.clear();
  }

  /**
   * Tells whether some paths of a pattern have a pattern of their own, as `/things/:id` and `/things/preview`. The router
   * gives them to the former for a method that only the former has.
   */
  isAmbiguous(pattern: string): boolean {
    const cached = this.ambiguous.get(pattern);
    if (cached !== undefined) return cached;
    const own = splitPath(pattern);
    const isAmbiguous = this.routes.some(
      ({ segments }) => matches(own, segments) && compareSegments(segments, own) < 0,
    );
    this.ambiguous.set(pattern, isAmbiguous);
    return isAmbiguous;
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
