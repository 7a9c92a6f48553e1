import { applyDecorators } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { SkipThrottle as Skip, Throttle as Limit } from '@nestjs/throttler';
import type { FastifyRequest } from 'fastify';

/** @property ttl how long a window is, in milliseconds */
export type RouteLimit = { limit: number; ttl: number };

type RouteThrottle = { throttle?: RouteLimit | false };

/**
 * The throttler's decorators, for methods. The gate runs before Nest knows a handler and the throttler
 * exports no keys of its metadata, so each says the same to Fastify's route as well.
 */
export function Throttle(limits: { default: RouteLimit }): MethodDecorator {
  return applyDecorators(Limit(limits), routeConfig({ throttle: limits.default }));
}

/** For what is outside the API: within it every answer says its limit. */
export function SkipThrottle(): MethodDecorator {
  return applyDecorators(Skip(), routeConfig({ throttle: false }));
}

/** @returns undefined where the route says nothing, false where it is not to be counted */
export function throttleOf({ routeOptions }: FastifyRequest): RouteLimit | false | undefined {
  return (routeOptions.config as RouteThrottle).throttle;
}

function routeConfig(config: RouteThrottle): MethodDecorator {
  return RouteConfig(config);
}
