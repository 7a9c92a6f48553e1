import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { readFileSync } from 'node:fs';
import { format as formatText, type FormatConfig } from 'oxfmt';
import { readConfig } from '#configuration/config.js';
import type { OpenApiDocument } from '#web/docs/openapi-document.js';
import { ApiModule } from '../../apps/api/api.module.js';
import { createOpenApiDocuments } from './openapi/document.js';
import { ENV_EXAMPLE, renderEnvExample } from './env-example.js';
import {
  EVENT_OPTIONS,
  renderEventOptions,
  renderWebhooksPage,
  WEBHOOKS_PAGE,
} from './event-table.js';
import { renderRolesPage, ROLES_PAGE } from './role-table.js';

const PUBLIC_URL = 'https://inkpad.example';

type ApiDocuments = { api: OpenApiDocument; admin: OpenApiDocument };

/** Creates the documents as they are committed: independent of the machine, and created without a database. */
export async function createOpenApi(): Promise<ApiDocuments> {
  return createOpenApiDocuments(await createPreviewApp(), PUBLIC_URL);
}

/** Modules and controllers to be inspected; nothing is constructed or connected. */
export async function createPreviewApp(): Promise<NestFastifyApplication> {
  const config = readConfig({
    DATABASE_URL: 'postgres://nowhere.invalid/inkpad',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    PUBLIC_URL,
  });
  return NestFactory.create<NestFastifyApplication>(
    ApiModule.forRoot(config),
    new FastifyAdapter(),
    { preview: true, logger: false, abortOnError: false },
  );
}

/** Renders every generated file that is committed, by its path. */
export async function renderApiDocuments({
  api: document,
  admin,
}: ApiDocuments): Promise<Record<string, string>> {
  return {
    'openapi.json': await format('openapi.json', JSON.stringify(document)),
    'openapi-admin.json': await format('openapi-admin.json', JSON.stringify(admin)),
    [ENV_EXAMPLE]: renderEnvExample(),
    [WEBHOOKS_PAGE]: await format('webhooks.md', renderWebhooksPage()),
    [EVENT_OPTIONS]: await format(EVENT_OPTIONS, renderEventOptions()),
    [ROLES_PAGE]: await format('roles.md', renderRolesPage()),
  };
}

/** Formats as `npm run check` expects it, by the ending of the file's name. */
async function format(name: string, text: string): Promise<string> {
  const style = JSON.parse(readFileSync('.oxfmtrc.json', 'utf8')) as FormatConfig;
  const { code, errors } = await formatText(name, text, style);
  if (errors.length > 0) throw new Error(`${name}: ${JSON.stringify(errors)}`);
  return code;
}
