import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The files that connect to others, and how they use the outgoing proxy (ADR-0016). */
const CONNECTING_FILES = {
  'libs/outbound/sending/proxy-tunnel.client.ts': 'connects to the proxy itself',
  'libs/outbound/sending/guarded-agent.client.ts': 'webhooks and web push',
  'libs/outbound/sending/outbound-http.client.ts': 'takes a tunnel',
  'libs/outbound/sending/outbound-node-agent.client.ts': 'takes a tunnel',
  'libs/outbound/apple-wallet/apns.client.ts': 'takes a tunnel',
  'libs/outbound/messages/mailbox.client.ts': 'takes a tunnel',
  'libs/outbound/messages/smtp.client.ts': 'takes a tunnel',
  'libs/outbound/geocoding/geocoder-server.client.ts': 'uses the agent of OutboundHttp',
  'libs/web/sign-in/company.client.ts': 'fetches with OutboundHttp',
  'libs/platform/kernel/span-export.ts': 'uses createNodeAgents',
  'libs/platform/http/shared-counts.ts': 'Redis: always direct',
  'libs/platform/event-store/eventstoredb/eventstoredb-connection.ts': 'KurrentDB: always direct',
  'libs/platform/event-store/eventstoredb/event-store-wait.ts': 'KurrentDB: always direct',
};

/** Modules that open connections, but for these of their exports. */
const HARMLESS_EXPORTS: Record<string, string[]> = {
  'node:net': ['isIP', 'isIPv4', 'isIPv6', 'Socket', 'BlockList'],
  'node:tls': ['createSecureContext'],
  'node:http': ['STATUS_CODES', 'IncomingMessage', 'ServerResponse', 'createServer'],
  'node:https': ['createServer'],
  'node:http2': ['constants', 'createSecureServer'],
  'node:dgram': [],
  undici: ['errors', 'Headers'],
  nodemailer: [],
  imapflow: [],
  'openid-client': [],
  ioredis: [],
  '@eventstore/db-client': [
    'convertToCommandError',
    'START',
    'END',
    'BACKWARDS',
    'FORWARDS',
    'streamNameFilter',
  ],
  '@opentelemetry/exporter-trace-otlp-http': [],
};

/** Finds what opens connections in a file. */
function findConnections(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const connections: string[] = [];
  const locals = new Set<string>();
  const addImport = (module: string, names: string[]) => {
    const harmless = HARMLESS_EXPORTS[module.replace(/^(net|tls|https?|http2|dgram)$/, 'node:$1')];
    if (harmless && names.some((name) => !harmless.includes(name))) connections.push(module);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      const names = listImportedValues(node);
      for (const name of names) locals.add(name);
      addImport(node.moduleSpecifier.text, names);
    } else if (ts.isCallExpression(node)) {
      const [argument] = node.arguments;
      const isImport = node.expression.kind === ts.SyntaxKind.ImportKeyword;
      if (isImport && argument && ts.isStringLiteral(argument)) addImport(argument.text, ['*']);
      const isFetch = ts.isIdentifier(node.expression) && node.expression.text === 'fetch';
      if (isFetch && !locals.has('fetch')) connections.push('fetch');
    } else if (ts.isNewExpression(node) && ts.isIdentifier(node.expression)) {
      if (['WebSocket', 'EventSource'].includes(node.expression.text))
        connections.push(node.expression.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return connections;
}

/** Lists the imported names, but for types; * for the whole module. */
function listImportedValues({ importClause: clause }: ts.ImportDeclaration): string[] {
  if (!clause || clause.isTypeOnly) return [];
  const { name, namedBindings: bindings } = clause;
  const names = name ? ['*'] : [];
  if (bindings && ts.isNamespaceImport(bindings)) names.push('*');
  if (bindings && ts.isNamedImports(bindings)) {
    for (const element of bindings.elements)
      if (!element.isTypeOnly) names.push((element.propertyName ?? element.name).text);
  }
  return names;
}

it('every file that connects to others is known, so that none goes past the outgoing proxy', () => {
  const files = ['libs', 'apps'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !/\.(spec|contract|d)\.ts$/.test(file))
      .map((file) => join(folder, file))
      // An operator's commands connect from the machine on which they are run.
      .filter((file) => !file.startsWith('apps/cli/')),
  );
  const connecting = files.filter(
    (file) => findConnections(file, readFileSync(file, 'utf8')).length > 0,
  );
  expect(connecting.sort()).toEqual(Object.keys(CONNECTING_FILES).sort());
});

it.each([
  ["import { connect } from 'node:tls';", ['node:tls']],
  ["import net from 'net';", ['net']],
  ["import * as http from 'node:http';", ['node:http']],
  ["import { type Socket, isIP } from 'node:net';", []],
  ["const { createTransport } = await import('nodemailer');", ['nodemailer']],
  ["await fetch('https://shop.example');", ['fetch']],
  ["import { fetch, errors } from 'undici'; fetch('');", ['undici']],
  ["this.http.fetch('');", []],
  ["new WebSocket('');", ['WebSocket']],
])('%s connects by %j', (text, expected) => {
  expect(findConnections('a.ts', text)).toEqual(expected);
});
