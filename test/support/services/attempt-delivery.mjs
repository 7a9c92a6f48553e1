import { readConfig } from '#configuration/config.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import { WebhookClient } from '#outbound/sending/webhook.client.js';

/** One attempt in a separate process, because Node.js reads NODE_EXTRA_CA_CERTS only at startup. */
const client = new WebhookClient(readConfig(process.env), new NameLookup());
const { outcome } = await client.send({
  url: process.argv[2],
  secret: `whsec_${Buffer.alloc(32).toString('base64')}`,
  eventId: 'evt_1',
  type: 'stamp.earned',
  body: Buffer.from('{}'),
});
console.log(JSON.stringify(outcome));
await client.onApplicationShutdown();
