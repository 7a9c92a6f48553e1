import type { FastifyRequest } from 'fastify';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import type { BodyConfig } from './body-kinds.js';
import { endpoints } from './endpoint.js';
import { API, getRoute, isAdminRoute, isApiRoute } from './path.js';
import type { OwnLimit } from './rate-limit.js';
import { setRouteConfig } from './route-config.js';
import type { RouteThrottle } from './throttle.js';

const STATUS = `${API}/status`;

type AccessOptions = RouteThrottle &
  Pick<BodyConfig, 'body'> & {
    operation?: string;
    isAvailable?: (config: PlatformConfig) => boolean;
    isAllowedInMaintenance?: boolean;
  };

/**
 * What hooks have to know of a route, decided when it is registered.
 * @property pattern `none` for all paths without a route, of which there are infinitely many
 * @property isAmbiguous whether some of its paths have a pattern of their own; undefined: not looked up yet
 * @property isUncounted whether no limit counts its requests
 * @property ownLimit counted separately from all others
 * @property operation the id of its `@Endpoint`
 */
export type RouteAccess = {
  pattern: string;
  area: 'api' | 'admin' | 'page';
  isStatus: boolean;
  isUncounted: boolean;
  ownLimit: OwnLimit | undefined;
  operation: string | undefined;
  readsMuch: boolean;
  takesJson: boolean;
  isAvailable: boolean;
  isAllowedInMaintenance: boolean;
  isAmbiguous?: boolean;
};

/** Makes a method available only with certain settings. Otherwise its path is 404, and no body is read. */
export function AvailableWhen<C extends PlatformConfig>(
  isAvailable: (config: C) => boolean,
): MethodDecorator {
  // The process has one configuration, which is of the class that the product declares.
  const options = { isAvailable } as AccessOptions;
  return setRouteConfig(options);
}

/** Names the config of a route that is not refused in maintenance, although its method writes. */
export const WORKS_IN_MAINTENANCE: AccessOptions = { isAllowedInMaintenance: true };

/** Keeps a method available in maintenance: it changes no record of an account, as a sign-in. */
export function WorksInMaintenance(): MethodDecorator {
  return setRouteConfig(WORKS_IN_MAINTENANCE);
}

/**
 * @param route its pattern, or the path of a request without one
 * @param config undefined: there is no such route
 */
export function createRouteAccess(
  route: string,
  { throttle, operation, body, isAvailable, isAllowedInMaintenance }: AccessOptions,
  config?: PlatformConfig,
): RouteAccess {
  return {
    pattern: config ? route : 'none',
    area: isApiRoute(route) ? 'api' : isAdminRoute(route) ? 'admin' : 'page',
    isStatus: route.replace(/\/$/, '') === STATUS,
    isUncounted: throttle === false,
    ownLimit: throttle ? { route, limit: throttle } : undefined,
    operation,
    readsMuch: endpoints.get(operation ?? '')?.readsMuch === true,
    takesJson: body === undefined,
    isAvailable: !config || !isAvailable || isAvailable(config),
    isAllowedInMaintenance: isAllowedInMaintenance ?? false,
  };
}

/** Returns what is known of a request's route; of a path without one, by its path. */
export function getRouteAccess(request: FastifyRequest & { access?: RouteAccess }): RouteAccess {
  return (request.access ??=
    (request.routeOptions.config as { access?: RouteAccess }).access ??
    createRouteAccess(getRoute(request), {}));
}
