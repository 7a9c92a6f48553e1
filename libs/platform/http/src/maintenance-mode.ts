import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MaintenanceError } from '#kernel/errors.js';
import type { Maintenance } from '#database/maintenance.service.js';
import { SAFE_METHODS } from './caller.js';
import { getRouteConfig, setRouteConfig } from './route-config.js';

type MaintenanceConfig = { isAllowedInMaintenance?: boolean };

/** Names the config of a route that is not refused in maintenance, although its method writes. */
export const WORKS_IN_MAINTENANCE: MaintenanceConfig = { isAllowedInMaintenance: true };

/** Keeps a method available in maintenance: it changes no record of an account, as a sign-in. */
export function WorksInMaintenance(): MethodDecorator {
  return setRouteConfig(WORKS_IN_MAINTENANCE);
}

/**
 * Refuses requests that write while maintenance mode is on (MAINT-01). Runs after the request guard, so that these
 * responses count like any other, and before a body is read.
 */
export function refuseInMaintenance(server: FastifyInstance, maintenance: Maintenance): void {
  server.addHook('onRequest', (request, _reply, done) => {
    if (SAFE_METHODS.has(request.method) || isAllowedInMaintenance(request)) return done();
    maintenance
      .find()
      .then((current) => done(current && new MaintenanceError(current.reason)), done);
  });
}

function isAllowedInMaintenance(request: FastifyRequest): boolean {
  return getRouteConfig<MaintenanceConfig>(request).isAllowedInMaintenance === true;
}
