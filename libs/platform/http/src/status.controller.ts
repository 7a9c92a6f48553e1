import { Controller, Get, Inject } from '@nestjs/common';
import { z } from 'zod';
import type { Config } from '#kernel/config.js';
import { CONFIG } from '#database/database.module.js';
import { Endpoint } from './endpoint.js';
import { timestamp } from './fields.js';
import { API } from './gate.js';
import { WINDOW_SECONDS } from './rate-limit.js';
import { SIGNALLING, VERSION_POLICY, versioningJson } from './versioning.js';

const AUTHENTICATION = 'Send Authorization: Bearer <API_TOKEN> with every request but this one.';

const address = (path: string) =>
  z.string().meta({ format: 'uri', example: `https://inkpad.example${path}` });

const status = z
  .object({
    status: z.literal('ok'),
    api_version: z.literal('v1'),
    authentication: z.string().meta({ example: AUTHENTICATION }),
    documentation_url: address('/docs'),
    developer_portal_url: address('/docs'),
    openapi_url: address('/openapi.json'),
    rate_limit: z.object({
      limit: z.int().meta({ example: 300 }),
      window_seconds: z.int().meta({ example: WINDOW_SECONDS }),
      scope: z.literal('api_token'),
    }),
    versioning: z.object({
      current: z.literal('v1'),
      supported: z.array(z.string()).meta({ example: ['v1'] }),
      deprecated: z.array(z.string()).meta({ example: [] }),
      policy_url: address(VERSION_POLICY),
      signalling: z.string().meta({ example: SIGNALLING }),
      deprecation_date: timestamp.optional(),
      sunset_date: timestamp.optional(),
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
      authentication: AUTHENTICATION,
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
