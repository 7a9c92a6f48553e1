import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { PlatformConfig } from '#kernel/platform-config.js';
import { getRouteConfig, setRouteConfig } from './route-config.js';

type Availability = { isAvailable?: (config: PlatformConfig) => boolean };

/** Makes a method available only with certain settings. Otherwise its path is 404, and no body is read. */
export function AvailableWhen<C extends PlatformConfig>(
  isAvailable: (config: C) => boolean,
): MethodDecorator {
  // The process has one configuration, which is of the class that the product declares.
  const config: Availability = { isAvailable: isAvailable as (config: PlatformConfig) => boolean };
  return setRouteConfig(config);
}

/**
 * Refuses what the settings make unavailable. Runs after the request guard, so that these responses count like any
 * other.
 */
export function refuseUnavailable(server: FastifyInstance, config: PlatformConfig): void {
  server.addHook('onRequest', (request, _reply, done) => {
    const { isAvailable } = getRouteConfig<Availability>(request);
    if (isAvailable && !isAvailable(config)) throw new NotFoundException();
    done();
  });
}
