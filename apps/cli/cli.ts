import { Command } from 'commander';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { rotateMasterKey } from '#platform/database/key-rotation.js';
import { AccountsService } from '#loyalty/accounts/accounts.service.js';
import { AuditService } from '#loyalty/history/audit.service.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { sealedColumns } from '../sealed-columns.js';
import { addAdminTokenCommands } from './administration/admin-token-commands.js';
import { addAuditFollowCommand } from './administration/audit-follow-command.js';
import { addCheckpointCommands } from './administration/checkpoint-commands.js';
import {
  parsePositive,
  parseTimeOption,
  runCommand,
  runList,
  type TimeOption,
} from './administration/command.js';
import { listErasures, readInputLines, repeatErasures } from './administration/erasures.js';
import { addExamples, reportUsageErrors } from './command-line.js';
import { addGeocodeCommands } from './administration/geocode-commands.js';
import { addHistoryCommands } from './administration/history-commands.js';
import { getOperator } from './operator.js';
import { addMaintenanceCommands } from './administration/maintenance-commands.js';
import { addPhoneCommands } from './administration/phone-commands.js';
import { createProgramCommands } from './programs.js';
import { addQuotaCommands } from './administration/quota-commands.js';
import { addRetirementCommands } from './administration/retirement-commands.js';
import { addBackupCommands } from './administration/recorded-backups.js';
import { runProgram } from './run-program.js';
import { withServices } from './command-services.js';
import { addStoreCommands } from './administration/store-commands.js';
import { addTokenCommands } from './administration/token-commands.js';
import { addUserCommands } from './administration/user-commands.js';

const by = getOperator();

const program = reportUsageErrors(new Command('inkpad'))
  .description('Runs, checks and administers an installation of Inkpad.')
  .addHelpText(
    'after',
    `
Examples:
  inkpad backup --help
  inkpad user:list
  inkpad token:create --user grace@shop.example --name till

The database is that of npm start or DATABASE_URL, and named on standard error. Commands that administer print one JSON
object. Unless it says otherwise, a command can be used while the service is running. Exit codes:
  0  all is done, and all is well
  1  not all is well; the last lines on standard error say why
  2  the command was called wrongly`,
  );

for (const command of createProgramCommands()) {
  // launcher.mjs starts them, unless something comes before the name.
  const refuse = () => command.error(`error: begin with the name: inkpad ${command.name()}`);
  program.addCommand(command.helpGroup('Programs:').action(refuse));
}
program.commandsGroup('Administration:');
addUserCommands(program, by);
addStoreCommands(program, by);
addTokenCommands(program, by);
addAdminTokenCommands(program, by);

program
  .command('key:rotate')
  .description(
    're-encrypts with MASTER_KEY everything that MASTER_KEY_PREVIOUS encrypted; can be interrupted and run again',
  )
  .action(() => {
    runProgram(async () => {
      const rotated = await withServices(async (app) => {
        const done = await rotateMasterKey({
          pool: app.get(Pool),
          config: app.get(Config),
          columns: sealedColumns,
          print: (line) => console.error(line),
        });
        await app
          .get(AuditedWrites)
          .write(by, (transaction) =>
            transaction.audit({ accountIds: [], type: 'master_key.rotated', subject: done }),
          );
        return done;
      });
      console.log(JSON.stringify(rotated));
      console.error('done: remove MASTER_KEY_PREVIOUS from the settings of every process');
    });
  });

addBackupCommands(program);
addCheckpointCommands(program);
addGeocodeCommands(program);
addHistoryCommands(program);
addMaintenanceCommands(program, by);
addPhoneCommands(program);
addQuotaCommands(program, by);
addRetirementCommands(program, by);

program
  .command('erasure:list')
  .description(
    'lists erased customers, one per line and without personal data; keep the list outside the database',
  )
  .action(() => {
    runProgram(() =>
      withServices(async (app) => {
        for await (const row of listErasures(app.get(Pool))) console.log(JSON.stringify(row));
      }),
    );
  });

program
  .command('erasure:repeat')
  .description(
    'after a restore: erases the customers on the list that it reads from standard input',
  )
  .action(() => {
    runCommand((_, app) => repeatErasures(app, by, readInputLines()));
  });

type AuditOptions = {
  account?: number;
  type?: string;
  actor?: string;
  from?: TimeOption;
  to?: TimeOption;
  before?: number;
  limit: number;
};

program
  .command('audit:list')
  .description('lists changes of users, tokens and webhook subscriptions, newest first')
  .option('--account <id>', 'the store; if omitted, entries that concern no store', parsePositive)
  .option('--type <type>', 'for example token.created')
  .option('--actor <type:id>', 'for example token:5')
  .option(
    '--from <time>',
    'recorded at or after this time, ISO 8601, or since that day',
    parseTimeOption('start'),
  )
  .option('--to <time>', 'recorded before this time, or until that day', parseTimeOption('next'))
  .option('--before <n>', 'only entries before audit_<n>', parsePositive)
  .option('--limit <n>', 'maximum number of entries', parsePositive, 100)
  .action(({ account, type, actor, from, to, before, limit }: AuditOptions) => {
    runList('entries', async (app) => {
      const timeZone =
        account === undefined ? 'UTC' : await app.get(AccountsService).getTimeZone(account);
      const filter = {
        type: type ?? null,
        actor: actor ?? null,
        from: from?.(timeZone) ?? null,
        to: to?.(timeZone) ?? null,
      };
      const range = { before: before ?? null, limit };
      const entries = await app.get(AuditService).list(account ?? null, filter, range);
      return entries.map(({ json }) => json);
    });
  });

addAuditFollowCommand(program);

const EXAMPLES: Record<string, string> = {
  'key:rotate': 'key:rotate',
  'checkpoint:key': 'checkpoint:key',
  'checkpoint:create-key': 'checkpoint:create-key --out checkpoint.key --name shop.example/inkpad',
  'checkpoint:consistency': 'checkpoint:consistency --from 0000000000001000.checkpoint',
  'geocode:import': 'geocode:import DE.zip',
  'geocode:again': 'geocode:again',
  'history:export': 'history:export --account 1 --out store.ndjson --personal',
  'history:import': 'history:import --in store.ndjson --key shop.example/inkpad+811710a6+Add…',
  'erasure:list': 'erasure:list > erasures.ndjson',
  'erasure:repeat': 'erasure:repeat < erasures.ndjson',
  'retirement:show': 'retirement:show',
  'retirement:withdraw': 'retirement:withdraw',
  'audit:list': 'audit:list --account 1 --type token.created --from 2026-01-01',
};
program
  .command('help [command]')
  .description('shows the options of a command, and an example')
  .action((name?: string) => {
    const command =
      name === undefined ? program : program.commands.find((each) => each.name() === name);
    if (command) command.help();
    // Suggests the name that is meant.
    else program.parse([String(name)], { from: 'user' });
  });

for (const command of program.commands) {
  const examples = EXAMPLES[command.name()];
  if (examples !== undefined) addExamples(command, examples);
}

program.parse();
