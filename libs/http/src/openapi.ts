import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#kernel/config.js';
import { components } from './endpoint.js';

const DESCRIPTION = `Loyalty stamp cards for local businesses. Every request but the status needs
\`Authorization: Bearer <API_TOKEN>\`. Every failure is JSON with \`error\`, \`code\`, usually a
\`resolution\`, and on 422 \`errors\` by field. Ids are integers, times are ISO 8601 in UTC. Response
fields that you do not know are to be ignored: new ones may come.`;

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Inkpad API</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/docs/swagger-ui.css" />
  </head>
  <body>
    <div id="docs"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true });\n`;

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Generated from the controllers and DTOs, so that it cannot say anything else than the code does. */
export function openApiDocument(app: INestApplication, config: Config): OpenAPIObject {
  const document = SwaggerModule.createDocument(
    app,
    new DocumentBuilder()
      .setOpenAPIVersion('3.1.0')
      .setTitle('Inkpad')
      .setVersion('v1')
      .setDescription(DESCRIPTION)
      .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
      .addServer(config.publicUrl)
      .addSecurity('token', { type: 'http', scheme: 'bearer' })
      .build(),
    // Each operation names its tag; the controllers' names would list them all twice.
    { autoTagControllers: false },
  );
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, ...components },
  };
  return document;
}

/** /openapi.json, and /docs to read it, from files of our own: nothing is loaded from elsewhere. */
export function serveDocs(server: FastifyInstance, document: OpenAPIObject): void {
  const serve = (path: string, type: string, body: string | Buffer) =>
    server.get(path, (_request, reply) =>
      reply
        .header('content-type', `${type}; charset=utf-8`)
        .header('content-security-policy', POLICY)
        .header('x-content-type-options', 'nosniff')
        .send(body),
    );
  const require = createRequire(import.meta.url);
  const asset = (name: string) => readFileSync(require.resolve(`swagger-ui-dist/${name}`));

  serve('/openapi.json', 'application/json', JSON.stringify(document));
  serve('/docs', 'text/html', PAGE);
  serve('/docs/start.js', 'text/javascript', START);
  serve('/docs/swagger-ui.css', 'text/css', asset('swagger-ui.css'));
  serve('/docs/swagger-ui-bundle.js', 'text/javascript', asset('swagger-ui-bundle.js'));
}
