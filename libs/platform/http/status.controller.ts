import { Controller, Get } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { DeclaresTag, Endpoint } from './endpoint.js';
import { Dto } from './dtos.js';
import { API } from './path.js';
import { WINDOW_SECONDS } from './rate-limit.js';
import {
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from './response-fields.js';
import { SIGNALLING, VERSION_POLICY, toVersioningJson } from './versioning.js';

const AUTHENTICATION = 'Send Authorization: Bearer <API_TOKEN> with every request but this one.';

@Dto('StatusRateLimit')
class RateLimitJson {
  @IntegerProperty({ example: 300, description: 'Requests allowed in a window.' })
  declare readonly limit: number;
  @IntegerProperty({ example: WINDOW_SECONDS, description: 'The length of a window, in seconds.' })
  declare readonly window_seconds: number;
  @OneOfProperty(['api_token'], { description: 'The requests that are counted together.' })
  declare readonly scope: 'api_token';
}

@Dto('StatusVersioning')
class StatusVersioningJson {
  @OneOfProperty(['v1'], { description: 'The version to use.' }) declare readonly current: 'v1';
  @TextsProperty({}, { example: ['v1'], description: 'Versions in service.' })
  declare readonly supported: string[];
  @TextsProperty({}, { example: [], description: 'Deprecated versions.' })
  declare readonly deprecated: string[];
  @AddressProperty(VERSION_POLICY, 'The policy for retiring versions, for people.')
  declare readonly policy_url: string;
  @TextProperty({
    example: SIGNALLING,
    description: 'The headers that announce the end of a version.',
  })
  declare readonly signalling: string;
  @TimestampProperty({
    optional: true,
    description: 'The date from which this version is deprecated.',
  })
  declare readonly deprecation_date?: string;
  @TimestampProperty({ optional: true, description: 'When this version stops working.' })
  declare readonly sunset_date?: string;
}

@Dto('Status')
class StatusJson {
  @OneOfProperty(['ok'], { description: 'ok: the API is up.' }) declare readonly status: 'ok';
  @OneOfProperty(['v1'], { description: 'The version that responds.' })
  declare readonly api_version: 'v1';
  @TextProperty({ example: AUTHENTICATION, description: 'How to authenticate.' })
  declare readonly authentication: string;
  @AddressProperty('/docs', 'Documentation, for people.')
  declare readonly documentation_url: string;
  @AddressProperty('/docs', 'Documentation, for people.')
  declare readonly developer_portal_url: string;
  @AddressProperty('/openapi.json', 'This document.') declare readonly openapi_url: string;
  @ObjectProperty(() => RateLimitJson, { description: 'The limit in force for you.' })
  declare readonly rate_limit: RateLimitJson;
  @ObjectProperty(() => StatusVersioningJson, { description: 'The versions of the API.' })
  declare readonly versioning: StatusVersioningJson;
}

@DeclaresTag({
  name: 'Status',
  order: 10,
  description:
    'Whether the service is up, and which limit and version are in force. Needs no token.',
})
@Controller(`${API}/status`)
export class StatusController {
  constructor(private readonly config: PlatformConfig) {}

  @Get()
  @Endpoint({
    id: 'getStatus',
    tag: 'Status',
    summary: 'Show the status',
    description: 'Says that the API is up, which limit is in force and how this version stands.',
    status: 200,
    response: StatusJson,
    isPublic: true,
  })
  show(): StatusJson {
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
      versioning: toVersioningJson(this.config, getNow()),
    };
  }
}

function AddressProperty(path: string, description: string): PropertyDecorator {
  return TextProperty({ format: 'uri', example: `https://inkpad.example${path}`, description });
}
