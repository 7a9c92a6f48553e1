import { CommandBus } from '@nestjs/cqrs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { Config } from '#kernel/config.js';
import { rotateMasterKey } from '#database/key-rotation.js';
import { CreateAccount } from '#accounts/account.commands.js';
import { CreateUser, RemoveUser, userIdOf } from '#identity/identity.commands.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { SetPassword } from '#identity/user.commands.js';
import { CreateToken, LimitToken, RevokeToken } from '#identity/token.commands.js';
import { AddMember, ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { ROLES, type Role } from '#identity/roles.js';
import { AuditService } from '#history/audit.service.js';
import { PlainWrites } from '#event-store/plain-writes.service.js';
import { sealedColumns } from '../apps/sealed-columns.js';
import { addCheckpointCommands } from './checkpoint-commands.js';
import { erasuresIn, linesOfInput, repeatErasures } from './erasures.js';
import { addGeocodeCommands } from './geocode-commands.js';
import { addHistoryCommands } from './history-commands.js';
import { operator } from './operator.js';
import { runScript, withServices } from './run-script.js';

const by = operator();

const program = new Command('cli').description(
  'Administers users, stores and tokens. Prints one JSON object; can be used while the service is running.',
);

program
  .command('user:create')
  .requiredOption('--email <email>')
  .requiredOption('--name <name>')
  .option('--password <password>', 'generated if omitted')
  .action((options: { email: string; name: string; password?: string }) => {
    run(async (bus) => {
      const password = options.password ?? randomBytes(12).toString('base64url');
      const { userId } = await bus.execute(
        new CreateUser(by, options.email, options.name, password),
      );
      const made = options.password === undefined ? { password } : {};
      return { user_id: userId, email: options.email, ...made };
    });
  });

program
  .command('user:set-password')
  .requiredOption('--email <email>')
  .option('--password <password>', 'generated if omitted')
  .action(({ email, password: given }: { email: string; password?: string }) => {
    run(async (bus) => {
      const password = given ?? randomBytes(12).toString('base64url');
      const { userId } = await bus.execute(new SetPassword(by, email, password));
      return { user_id: userId, email, ...(given === undefined && { password }) };
    });
  });

program
  .command('user:remove-codes')
  .description('for who has lost phone and recovery codes: the password alone lets them in')
  .requiredOption('--email <email>')
  .action(({ email }: { email: string }) => {
    runScript(async () => {
      const userId = await withServices(async (app) => {
        const found = await userIdOf(app.get(DataSource).manager, email);
        await app.get(SecondFactors).remove(by, found);
        return found;
      });
      console.log(JSON.stringify({ user_id: userId, email }));
    });
  });

program
  .command('user:remove')
  .requiredOption('--email <email>')
  .action(({ email }: { email: string }) => {
    run(async (bus) => ({ user_id: (await bus.execute(new RemoveUser(by, email))).userId }));
  });

type StoreOptions = {
  name: string;
  user: string;
  timeZone: string;
  locale: string;
  personal: boolean;
};

program
  .command('store:create')
  .requiredOption('--name <name>')
  .requiredOption('--user <email>')
  .option('--time-zone <zone>', 'IANA time zone name', 'UTC')
  .option('--locale <locale>', '', 'en')
  .option('--personal', "the user's own store", false)
  .action((options: StoreOptions) => {
    run(async (bus) => {
      const { id } = await bus.execute(
        new CreateAccount(by, {
          name: options.name,
          storeName: null,
          personal: options.personal,
          timeZone: options.timeZone,
          locale: options.locale,
        }),
      );
      await bus.execute(new AddMember(by, id, options.user, 'owner', options.personal));
      return { account_id: id };
    });
  });

program
  .command('member:add')
  .requiredOption('--store <id>', '', positive)
  .requiredOption('--user <email>')
  .addOption(new Option('--role <role>', 'docs/roles.md').choices(ROLES).default('owner'))
  .action(({ store, user, role }: { store: number; user: string; role: Role }) => {
    run(async (bus) => {
      const { userId } = await bus.execute(new AddMember(by, store, user, role));
      return { account_id: store, user_id: userId, role };
    });
  });

program
  .command('member:role')
  .description('changes what a member may do in the store')
  .requiredOption('--store <id>', '', positive)
  .requiredOption('--user <email>')
  .addOption(new Option('--role <role>', 'docs/roles.md').choices(ROLES).makeOptionMandatory())
  .action(({ store, user, role }: { store: number; user: string; role: Role }) => {
    run(async (bus) => {
      const { userId } = await bus.execute(new ChangeRole(by, store, user, role));
      return { account_id: store, user_id: userId, role };
    });
  });

program
  .command('member:remove')
  .requiredOption('--store <id>', '', positive)
  .requiredOption('--user <email>')
  .action(({ store, user }: { store: number; user: string }) => {
    run(async (bus) => {
      const { userId } = await bus.execute(new RemoveMember(by, store, user));
      return { account_id: store, user_id: userId };
    });
  });

program
  .command('token:create')
  .requiredOption('--user <email>')
  .requiredOption('--name <name>')
  .option('--expires <time>', 'when it stops working, ISO 8601; never if omitted', time)
  .action(({ user, name, expires }: { user: string; name: string; expires?: Date }) => {
    run(async (bus) => {
      const made = new CreateToken(by, user, name, expires ?? null);
      const { tokenId, token } = await bus.execute(made);
      return { token_id: tokenId, api_token: token };
    });
  });

program
  .command('token:limit')
  .requiredOption('--token-id <id>', '', positive)
  .requiredOption('--per-minute <n>', '', positive)
  .action(({ tokenId, perMinute }: { tokenId: number; perMinute: number }) => {
    run(async (bus) => {
      await bus.execute(new LimitToken(by, tokenId, perMinute));
      return { token_id: tokenId, per_minute: perMinute };
    });
  });

program
  .command('token:revoke')
  .requiredOption('--token-id <id>', '', positive)
  .action(({ tokenId }: { tokenId: number }) => {
    run(async (bus) => {
      await bus.execute(new RevokeToken(by, tokenId));
      return { token_id: tokenId, revoked: true };
    });
  });

program
  .command('key:rotate')
  .description(
    'reseals with MASTER_KEY everything that MASTER_KEY_PREVIOUS sealed; may be interrupted and run again',
  )
  .action(() => {
    runScript(async () => {
      const rotated = await withServices(async (app) => {
        const done = await rotateMasterKey({
          pool: app.get(Pool),
          config: app.get(Config),
          columns: sealedColumns,
          say: (line) => console.error(line),
        });
        await app
          .get(PlainWrites)
          .write(by, (transaction) =>
            transaction.audit({ accountIds: [], type: 'master_key.rotated', subject: done }),
          );
        return done;
      });
      console.log(JSON.stringify(rotated));
      console.error('done: remove MASTER_KEY_PREVIOUS from the settings of every process');
    });
  });

addCheckpointCommands(program);
addGeocodeCommands(program);
addHistoryCommands(program, positive);

program
  .command('erasure:list')
  .description(
    'who was erased, one line each and without personal data, to be kept outside the database',
  )
  .action(() => {
    runScript(() =>
      withServices(async (app) => {
        for await (const one of erasuresIn(app.get(Pool))) console.log(JSON.stringify(one));
      }),
    );
  });

program
  .command('erasure:repeat')
  .description('after a restore: erases whoever is on the list that it reads from standard input')
  .action(() => {
    runScript(async () => {
      const repeated = await withServices((app) => repeatErasures(app, by, linesOfInput()));
      console.log(JSON.stringify(repeated));
    });
  });

type AuditOptions = {
  account?: number;
  type?: string;
  actor?: string;
  from?: Date;
  to?: Date;
  before?: number;
  limit: number;
};

program
  .command('audit:list')
  .description('what was done to users, tokens and webhook subscriptions, newest first')
  .option('--account <id>', 'the store; if omitted, what was about none', positive)
  .option('--type <type>', 'such as token.created')
  .option('--actor <type:id>', 'such as token:5')
  .option('--from <time>', 'recorded at or after this time, ISO 8601', time)
  .option('--to <time>', 'recorded before this time', time)
  .option('--before <n>', 'only entries before audit_<n>', positive)
  .option('--limit <n>', 'how many at most', positive, 100)
  .action(({ account, type, actor, from, to, before, limit }: AuditOptions) => {
    runScript(async () => {
      const filter = {
        type: type ?? null,
        actor: actor ?? null,
        from: from ?? null,
        to: to ?? null,
      };
      const entries = await withServices((app) =>
        app.get(AuditService).list(account ?? null, filter, { before: before ?? null, limit }),
      );
      console.log(JSON.stringify({ entries: entries.map(({ json }) => json) }));
    });
  });

program.parse();

function run(work: (bus: CommandBus) => Promise<object>): void {
  runScript(async () => {
    const answer = await withServices((app) => work(app.get(CommandBus)));
    console.log(JSON.stringify(answer));
  });
}

function time(text: string): Date {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new InvalidArgumentError('must be an ISO 8601 time');
  return at;
}

function positive(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new InvalidArgumentError('must be a positive integer');
  }
  return number;
}
