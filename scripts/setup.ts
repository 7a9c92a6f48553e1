import { CommandBus } from '@nestjs/cqrs';
import { randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { CreateAccount } from '#accounts/account.commands.js';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { operator } from './operator.js';
import { runScript } from './run-script.js';
import { withServices } from './script-services.js';

const EMAIL = 'owner@inkpad.local';

/**
 * On an empty database: creates the first user, store and token, printed as one JSON line. Each step checks
 * whether it has been done, so that the next start completes an interrupted one.
 */
runScript(async () => {
  const answer = await withServices(async (app) => {
    const source = app.get(DataSource);
    const bus = app.get(CommandBus);
    const by = operator();

    const tokens: unknown[] = await source.query('select 1 from api_tokens limit 1');
    if (tokens.length > 0) return { created: false };

    // An interrupted setup cannot be continued: its password is lost.
    const interrupted: unknown[] = await source.query(
      'select 1 from users where lower(email) = $1 and removed_at is null',
      [EMAIL],
    );
    if (interrupted.length > 0) await bus.execute(new RemoveUser(by, EMAIL));
    const password = randomBytes(12).toString('base64url');
    await bus.execute(new CreateUser(by, EMAIL, 'Owner', password));
    const [store]: { id: number }[] = await source.query('select id from accounts limit 1');
    const accountId =
      store?.id ??
      (
        await bus.execute(
          new CreateAccount(by, {
            name: 'My store',
            storeName: null,
            personal: true,
            timeZone: 'UTC',
            locale: 'en',
          }),
        )
      ).id;
    await bus.execute(new AddMember(by, accountId, EMAIL, 'owner', true));
    const { token } = await bus.execute(new CreateToken(by, EMAIL, 'first token'));
    return { created: true, api_token: token, account_id: accountId, email: EMAIL, password };
  });
  console.log(JSON.stringify(answer));
});
