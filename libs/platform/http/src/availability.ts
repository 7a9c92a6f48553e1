import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { PlatformConfig } from '#kernel/platform-config.js';
import { setRouteConfig } from './route-config.js';

type Availability = { isAvailable?: (config: PlatformConfig) => boolean };

/** For methods: without these settings there is no such path (404), and no body that is sent there is read. */
export function AvailableWhen<C extends PlatformConfig>(
  isAvailable: (config: C) => boolean,
): MethodDecorator {
  // The process has one configuration, which is of the class that the product declares.
  const config: Availability = { isAvailable: isAvailable as (config: PlatformConfig) => boolean };
  return setRouteConfig(config);
}

/** Refuses what the settings make unavailable. Behind the gate, so that these answers count as any other. */
export function refuseUnavailable(server: FastifyInstance, config: PlatformConfig): void {
  server.addHook('onRequest', ({ routeOptions }, _reply, done) => {
    const { isAvailable } = routeOptions.config as Availability;
    if (isAvailable && !isAvailable(config)) throw new NotFoundException();
    done();
  });
}
