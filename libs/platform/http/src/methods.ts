import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { MethodNotAllowedError } from '#kernel/errors.js';
import { getRoute } from './path.js';

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
    if (!isOptions && !request.is404) return done();
    const allowed = routes.findMethods(getRoute(request));
    if (allowed.length === 0) {
      if (request.is404) throw new NotFoundException();
      return done();
    }
    reply.header('allow', allowed.join(', '));
    if (!isOptions) throw new MethodNotAllowedError(request.method, allowed);
    void reply.status(204).send();
  });
}

/** Lists the routes of a path; the router finds only the one that handles a request. */
export class RouteTable {
  private readonly routes: { segments: string[]; method: string }[] = [];

  add(pattern: string, method: string): void {
    if (pattern !== '*') this.routes.push({ segments: splitPath(pattern), method });
  }

  /**
   * Finds the methods of a path.
   * @returns sorted, with OPTIONS; none for a path that does not exist
   */
  findMethods(path: string): string[] {
    const pathSegments = splitPath(path);
    const methods = this.routes
      .filter(({ segments }) => matches(segments, pathSegments))
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
    pattern.every((segment, i) => (segment.startsWith(':') ? path[i] !== '' : segment === path[i]))
  );
}
