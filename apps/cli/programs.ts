import { Command, InvalidArgumentError, Option } from 'commander';
import { addExamples, reportUsageErrors } from './command-line.js';

type Program = {
  description: string;
  examples: [string, ...string[]];
  addOptions?: (command: Command) => void;
};

/** The commands that are programs, each in the file of its name. All others are commands of cli.ts. */
const PROGRAMS: Record<string, Program> = {
  backup: {
    description: 'copies the whole database into a new, sealed folder',
    examples: ['backup', 'backup /backups/today', 'backup --check /backups/today'],
    addOptions: (command) =>
      command
        .argument('[folder]', 'a new folder; by default backups/inkpad-<time>')
        .option('--check', 'only check that the backup in the folder is whole and unchanged'),
  },
  restore: {
    description: 'puts a backup into an empty database and verifies it; Inkpad must be stopped',
    examples: ['restore backups/inkpad-20260131T120000Z'],
    addOptions: (command) =>
      command
        .argument('<folder>', 'the folder of the backup')
        // Both are for launcher.mjs, which starts the database of a data folder between the two.
        .addOption(new Option('--check').hideHelp())
        .addOption(new Option('--into-data-folder').hideHelp()),
  },
  verify: {
    description: 'compares the read models, hashes and statistics with the events',
    examples: ['verify', 'verify --repair', 'verify --checkpoints /checkpoints'],
    addOptions: (command) =>
      command
        .option('--repair', 'replace what does not match the events')
        .option('--checkpoints <folder>', 'also compare the history with the checkpoints there')
        .option(
          '--key <key>',
          'the public key of these checkpoints; by default that of the settings',
        ),
  },
  rebuild: {
    description: 'makes the read models, the history table and the statistics anew from the events',
    examples: ['rebuild --check', 'rebuild', 'rebuild --table cards'],
    addOptions: (command) =>
      command
        .option('--check', 'only print what differs')
        .option('--table <name>', 'one read model alone, or claims, history or statistics'),
  },
  migrate: {
    description: 'brings the tables of the database up to date',
    examples: ['migrate'],
  },
  doctor: {
    description: 'checks the database and e-mail, and says what to do',
    examples: ['doctor'],
  },
  'move-events': {
    description: 'moves the history to KurrentDB (EventStoreDB) or back; Inkpad must be stopped',
    examples: ['move-events --to eventstoredb', 'move-events --to postgres'],
    addOptions: (command) =>
      command.addOption(
        new Option('--to <engine>', 'where the history goes')
          .choices(['eventstoredb', 'postgres'])
          .makeOptionMandatory(),
      ),
  },
  'rebase-positions': {
    description: 'renumbers the events after a logical dump and restore; Inkpad must be stopped',
    examples: ['rebase-positions'],
  },
  'event-store-access': {
    description: 'lets a user of KurrentDB (EventStoreDB) do what Inkpad does, and no more',
    examples: ['event-store-access', 'event-store-access --user inkpad'],
    addOptions: (command) =>
      command.option(
        '--user <name>',
        'a user that exists; by default that of EVENT_STORE_URL, created if need be',
        parseEventStoreUser,
      ),
  },
  demo: {
    description:
      'plays the main scenario on the service of npm start, from a new card to a redeemed reward',
    examples: ['demo'],
  },
  'demo:shop': {
    description: 'fills a new store with a year of a café, for screenshots and trials',
    examples: ['demo:shop'],
  },
  'webhooks:listen': {
    description: 'verifies and prints the webhooks that it receives, until Ctrl-C',
    examples: [
      'webhooks:listen                                            print what npm start sends',
      'webhooks:listen --forward-to http://localhost:8787/hooks   try the receiver that you are writing',
      'webhooks:listen --fail 3 --retry-after 30                  see how retries go',
    ],
    addOptions: addListenerOptions,
  },
};

function addListenerOptions(command: Command): void {
  command
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on; any free one by default', parseNatural, 0)
    .addOption(
      new Option('--secret <whsec_…>', 'signing secret, or public key, of an existing subscription')
        .env('WEBHOOK_SECRET')
        .argParser(parseSigningSecret),
    )
    .option(
      '--url <url>',
      'URL of the service, with --token and --account; default: that of npm start',
    )
    .addOption(new Option('--token <ink_…>').env('INKPAD_TOKEN'))
    .option('--account <id>', 'id of the store', parseNatural)
    .option('--target-url <url>', 'public URL of this listener, if it is behind a tunnel')
    .option('--events <names>', 'event names, separated by commas', (names) => names.split(','), [
      '*',
    ])
    .addOption(
      new Option('--signature <scheme>', 'how the webhooks are signed')
        .choices(['hmac', 'ed25519'])
        .default('hmac'),
    )
    .option('--status <n>', 'status to return; default 204, or 500 for failures', parseHttpStatus)
    .option('--fail <n>', 'fail the first n attempts of each event only', parseNatural)
    .option('--delay <ms>', 'delay before each response', parseNatural, 0)
    .option('--retry-after <s>', 'Retry-After header of failures, which are then 503', parseNatural)
    .option('--drop', 'close the connection instead of responding')
    .addOption(
      new Option(
        '--forward-to <url>',
        'send each verified webhook on to this URL, and respond as it does',
      )
        .argParser(parseUrl)
        .conflicts(['status', 'fail', 'retryAfter', 'drop']),
    )
    .option('--forward-timeout <ms>', 'how long that may take; then 502', parseNatural, 10_000);
}

export function isProgram(name: string): boolean {
  return Object.hasOwn(PROGRAMS, name);
}

export function createProgramCommands(): Command[] {
  return Object.entries(PROGRAMS).map(([name, program]) => createCommand(name, program));
}

/** Parses the arguments of a program. Ends the process if they ask for help, or are wrong. */
export function parseProgram(name: string, args: string[] = process.argv.slice(2)): Command {
  const program = PROGRAMS[name];
  if (!program) throw new Error(`there is no program ${name}`);
  return createCommand(`inkpad ${name}`, program).parse(args, { from: 'user' });
}

function createCommand(name: string, { description, examples, addOptions }: Program): Command {
  const command = reportUsageErrors(new Command(name).description(description));
  addOptions?.(command);
  return addExamples(command, ...examples);
}

function parseEventStoreUser(text: string): string {
  if (/^[^$]/.test(text)) return text;
  throw new InvalidArgumentError('must be the name of a user, not of a group');
}

function parseSigningSecret(text: string): string {
  if (/^(whsec_[A-Za-z0-9+/]+={0,2}|whpk_[A-Za-z0-9+/]{43}=)$/.test(text)) return text;
  throw new InvalidArgumentError('must be whsec_ followed by base64, or a public key (whpk_…)');
}

function parseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:/i.test(text)) return text;
  throw new InvalidArgumentError('must be an http or https URL');
}

function parseNatural(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number');
  return Number(text);
}

function parseHttpStatus(text: string): number {
  const status = parseNatural(text);
  if (status < 200 || status > 599) throw new InvalidArgumentError('must be from 200 to 599');
  return status;
}
