import { Controller, Get, Inject } from '@nestjs/common';
import { z } from 'zod';
import type { Config } from '#kernel/config.js';
import { CONFIG } from '#database/database.module.js';
import { Endpoint } from './endpoint.js';
import { API } from './gate.js';
import { WINDOW_SECONDS } from './rate-limit.js';
import { versioningJson } from './versioning.js';

const status = z
  .object({
    status: z.literal('ok'),
    api_version: z.literal('v1'),
    authentication: z.string(),
    documentation_url: z.string(),
    developer_portal_url: z.string(),
    openapi_url: z.string(),
    rate_limit: z.object({
      limit: z.int(),
      window_seconds: z.int(),
      scope: z.literal('api_token'),
    }),
    versioning: z.object({
      current: z.literal('v1'),
      supported: z.array(z.string()),
      deprecated: z.array(z.string()),
      policy_url: z.string(),
      signalling: z.string(),
      deprecation_date: z.iso.datetime().optional(),
      sunset_date: z.iso.datetime().optional(),
    }),
  })
  .meta({ id: 'Status' });

@Controller(`${API}/status`)
export class StatusController {
  constructor(@Inject(CONFIG) private readonly config: Config) {}

  @Get()
  @Endpoint({
    id: 'getStatus',
    tag: 'Status',
    summary: 'Is the API up, and which limit and version are in force',
    status: 200,
    answer: status,
    open: true,
  })
  show(): z.infer<typeof status> {
    const { publicUrl, rateLimitPerMinute } = this.config;
    return {
      status: 'ok',
      api_version: 'v1',
      authentication: 'Send Authorization: Bearer <API_TOKEN> with every request but this one.',
      documentation_url: `${publicUrl}/docs`,
      developer_portal_url: `${publicUrl}/docs`,
      openapi_url: `${publicUrl}/openapi.json`,
      rate_limit: {
        limit: rateLimitPerMinute,
        window_seconds: WINDOW_SECONDS,
        scope: 'api_token',
      },
      versioning: versioningJson(this.config, new Date()),
    };
  }
}
