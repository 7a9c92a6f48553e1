import { Controller, Get, Header, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { SkipThrottle } from '#platform/http/throttle.js';
import { Readiness, type Health } from './readiness.js';

/** Serves health checks for operators: without limits, and not in the OpenAPI document. */
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get('live')
  @SkipThrottle()
  @Header('cache-control', 'no-store')
  live(): Health {
    return { status: 'ok' };
  }

  @Get('ready')
  @SkipThrottle()
  @Header('cache-control', 'no-store')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<Health> {
    const health = await this.readiness.check();
    reply.status(health.status === 'ok' ? 200 : 503);
    return health;
  }
}
