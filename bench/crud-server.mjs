import { createHash, randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';
import * as statements from './crud-statements.mjs';

const KEPT_MS = 5_000;
const WINDOW_MS = 60_000;
const LIMIT = 100_000_000;

const stampCard = { 'crud-tx': statements.inTransaction, 'crud-one': statements.inOneStatement }[
  process.argv[2]
];
const logLevel = process.argv[3] ?? 'silent';

pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });

const id = { type: 'integer', minimum: 1 };
const schema = {
  params: {
    type: 'object',
    required: ['account_id', 'customer_id', 'id'],
    properties: { account_id: id, customer_id: id, id },
  },
  body: {
    type: 'object',
    required: ['stamps'],
    properties: {
      stamps: { type: 'integer', minimum: 1, maximum: 100 },
      note: { type: ['string', 'null'], maxLength: 500 },
      source: { type: 'string', enum: ['api', 'pos'], default: 'api' },
      location_id: { type: ['integer', 'null'], minimum: 1 },
      external_ref: { type: ['string', 'null'], maxLength: 200 },
    },
  },
  response: {
    200: {
      type: 'object',
      properties: {
        id: { type: 'integer' },
        uuid: { type: 'string' },
        card_id: { type: 'integer' },
        card_name: { type: 'string' },
        status: { type: 'string' },
        stamps_count: { type: 'integer' },
        stamps_remaining: { type: 'integer' },
        progress_percentage: { type: 'integer' },
        pass_installed: { type: 'boolean' },
        apple_wallet_url: { type: 'string' },
        google_wallet_url: { type: 'string' },
        issued_at: { type: 'string' },
        created_at: { type: 'string' },
        updated_at: { type: 'string' },
        code: { type: 'string' },
        customer_id: { type: 'integer' },
        account_id: { type: 'integer' },
        available_rewards: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              id: { type: 'integer' },
              name: { type: 'string' },
              description: { type: ['string', 'null'] },
              stamps_required: { type: 'integer' },
            },
          },
        },
      },
    },
  },
};

const app = Fastify({
  genReqId: () => randomUUID(),
  requestIdHeader: 'x-request-id',
  logger: { level: logLevel },
  // One line for each request, as Inkpad logs it, instead of two.
  disableRequestLogging: true,
});

if (logLevel === 'info') {
  app.addHook('onResponse', async (request, reply) => {
    const { caller } = request;
    const responseTime = reply.elapsedTime;
    request.log.info({ req: request, res: reply, token_id: caller?.id, responseTime });
  });
}

app.addHook('onRequest', async (request, reply) => {
  reply.header('x-request-id', request.id).header('cache-control', 'no-store');
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  const caller = token && (await callerOf(token));
  const { remaining, resetSeconds } = count(caller ? `token ${caller.id}` : `ip ${request.ip}`);
  reply
    .header('ratelimit-limit', LIMIT)
    .header('ratelimit-remaining', remaining)
    .header('ratelimit-reset', resetSeconds)
    .header('ratelimit-policy', `${LIMIT};w=${WINDOW_MS / 1000}`);
  if (remaining < 0) return reply.code(429).send({ error: 'Too many requests' });
  if (!caller) return reply.code(401).send({ error: 'The token is missing or invalid' });
  if (!caller.accounts.has(request.params.account_id)) {
    return reply.code(404).send({ error: 'Store not found' });
  }
  request.caller = caller;
});

app.post(
  '/api/v1/accounts/:account_id/customers/:customer_id/customer_cards/:id/stamp',
  { schema },
  async (request, reply) => {
    const done = await stampCard(pool, {
      ...request.params,
      ...request.body,
      note: request.body.note ?? null,
      location_id: request.body.location_id ?? null,
      external_ref: request.body.external_ref ?? null,
      token_id: request.caller.id,
      request_id: request.id,
    });
    if (!done) return reply.code(404).send({ error: 'Customer card not found' });
    if (done.refused) return reply.code(422).send({ error: done.refused });
    return detail(done);
  },
);

const callers = new Map();

async function callerOf(token) {
  const sha256 = createHash('sha256').update(token).digest();
  const key = sha256.toString('base64');
  const existing = callers.get(key);
  if (existing && existing.until > Date.now()) return existing;
  const { rows } = await pool.query({
    name: 'caller',
    text: `select t.id, array_agg(m.account_id::text) as accounts
           from api_tokens t join memberships m on m.user_id = t.user_id
           where t.sha256 = $1 and t.revoked_at is null group by t.id`,
    values: [sha256],
  });
  if (rows.length === 0) return undefined;
  const caller = {
    id: rows[0].id,
    // As text: path parameters are not converted yet when the hook runs.
    accounts: new Set(rows[0].accounts),
    until: Date.now() + KEPT_MS,
  };
  callers.set(key, caller);
  return caller;
}

const windows = new Map();

function count(key) {
  const now = Date.now();
  let window = windows.get(key);
  if (!window || window.end <= now) windows.set(key, (window = { end: now + WINDOW_MS, used: 0 }));
  window.used++;
  return {
    remaining: LIMIT - window.used,
    resetSeconds: Math.ceil((window.end - now) / 1000),
  };
}

function detail({ customerCard, card, rewards }) {
  const { stamps_count: stamps, uuid } = customerCard;
  const next = rewards.find((reward) => reward.stamps_required > stamps);
  const target = next?.stamps_required ?? card.stamps_required;
  const issuedAt = customerCard.issued_at.toISOString();
  return {
    id: customerCard.id,
    uuid,
    card_id: customerCard.card_id,
    card_name: card.name,
    status: stamps >= card.stamps_required ? 'completed' : 'active',
    stamps_count: stamps,
    stamps_remaining: Math.max(0, card.stamps_required - stamps),
    progress_percentage: Math.min(100, Math.floor((100 * stamps) / target)),
    pass_installed: false,
    apple_wallet_url: `${publicUrl}/passes/${uuid}/apple`,
    google_wallet_url: `${publicUrl}/passes/${uuid}/google`,
    issued_at: issuedAt,
    created_at: issuedAt,
    updated_at: customerCard.updated_at.toISOString(),
    code: customerCard.code,
    customer_id: customerCard.customer_id,
    account_id: customerCard.account_id,
    available_rewards: rewards.filter((reward) => reward.stamps_required <= stamps),
  };
}

await app.listen({ port: 0, host: '127.0.0.1' });
const { port } = app.server.address();
const publicUrl = `http://localhost:${port}`;
process.send({ port });
