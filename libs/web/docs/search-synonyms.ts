/** Words that people search for, next to those that the documentation uses in titles. */
const SYNONYMS: readonly (readonly [title: RegExp, words: string])[] = [
  [/^Undo an event/, 'refund void cancel reverse storno return'],
  [/^Correct a balance/i, 'adjust manual points'],
  [/^Add stamps POST/i, 'stamp points earn punch scan purchase'],
  [/^Redeem a reward/i, 'claim spend burn voucher coupon'],
  [/^Enrol a customer|^Create a customer/i, 'signup register member join enroll'],
  [/^List or search customers/i, 'find lookup member email phone'],
  [/^Erase a customer/i, 'delete gdpr privacy forget remove'],
  [/^Export all/i, 'gdpr privacy data access'],
  [/^Merge two/i, 'duplicate dedupe combine'],
  [
    /^Try without storing|dry run|^Testing|test store/i,
    'sandbox test mode dry_run simulate preview staging',
  ],
  [/^(TypeScript|Python) client Guide/, 'sdk library package client'],
  [/^TypeScript client Guide/, 'npm javascript js node'],
  [/^Python client Guide/, 'pip asyncio django flask'],
  [
    /^OpenAPI document/,
    'swagger schema generator sdk csharp c# dotnet .net java kotlin ruby php go rust swift',
  ],
  [/^Postman collection/, 'insomnia bruno hoppscotch import'],
  [/with a code\b/i, 'qr barcode scan scanner'],
  [/poster/i, 'qr print signup'],
  [/\bmany\b|batch|^import/i, 'bulk batch import mass csv'],
  [/^Pages of a list/i, 'pagination paginate cursor next offset'],
  [/^Requests per minute|^Requests? (rate|limit)/i, 'throttling quota rate limit 429'],
  [/^Retries/i, 'retry resend idempotency idempotent duplicate timeout'],
  [/^Changelog/i, 'release notes history news version'],
  [/^Verify the signature/i, 'hmac secret standardwebhooks'],
  [/^A whole receiver/i, 'java go php sample example endpoint server'],
  [
    /^Paused and disabled|^Update a webhook subscription|^Send the events of a period/i,
    'pause resume suspended stopped inactive enable missed missing lost events',
  ],
  [/^With a public key/i, 'ed25519 v1a asymmetric whpk'],
  [/^Webhooks Guide/, 'callback notification push event'],
  [/^Authentication/i, 'bearer api key login oauth token'],
  [/^Zapier/i, 'no-code workflow automation integromat'],
  [/^Show where a customer keeps a card/i, 'apple google wallet pass'],
];

/** @returns the words for what has this title, separated by spaces */
export function findSynonyms(title: string): string {
  return SYNONYMS.filter(([pattern]) => pattern.test(title))
    .map(([, words]) => words)
    .join(' ');
}
