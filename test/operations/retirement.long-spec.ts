import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RemoveUser } from '#identity/identity.commands.js';
import { createTestEnvironment, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { runNode, startProgram, type Program } from '../support/services/program.js';
import { announcedDatabase } from '../support/services/retirement.js';
import { cli, startService, type Service } from '../support/services/service.js';

type Announced = { announced_at: Date; withdrawn_at: Date | null };

const DAY = 24 * 3_600_000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY);

let service: Service | undefined;

afterEach(() => service?.stop());

describe('an announced retirement', () => {
  it('can be withdrawn by retirement:withdraw, and announced again', async () => {
    const database = await announcedDatabase(daysFromNow(-300), daysFromNow(100));
    const run = (...args: string[]) =>
      runNode(['dist/apps/cli/cli.js', ...args], createTestEnvironment(database.url));
    expect(run('retirement:show').output).toContain(daysFromNow(100).toISOString().slice(0, 10));
    expect(run('retirement:withdraw')).toMatchObject({ status: 0 });
    expect(run('retirement:withdraw')).toEqual({
      status: 1,
      output: 'No retirement of v1 is announced, so there is nothing to withdraw.\n',
    });
    await (await startService({}, database)).app.close();
    service = await startService(
      {
        API_V1_DEPRECATION_DATE: daysFromNow(30).toISOString(),
        API_V1_SUNSET_DATE: daysFromNow(400).toISOString(),
      },
      database,
    );
    const { rows: announcements } = await database.query<Announced>(
      'select announced_at, withdrawn_at from api_retirements order by id',
    );
    const [former, current] = announcements;
    expect([former?.withdrawn_at, current?.withdrawn_at]).toEqual([expect.any(Date), null]);
    expect(current?.announced_at.getTime()).toBeGreaterThan(Date.now() - DAY);
    const { rows } = await database.query<{ type: string }>(
      'select type from audit_log order by id',
    );
    expect(rows.map(({ type }) => type)).toEqual([
      'api_version.retirement_withdrawn',
      'api_version.retirement_announced',
    ]);
  });
});

describe('users of a retired API version', () => {
  const SUNSET = daysFromNow(400);
  const dispatchers = new Set<Program>();
  let mails: MailServer;
  let database: TestDatabase;

  beforeEach(async () => {
    mails = await MailServer.start();
    database = await announcedDatabase(daysFromNow(-1), SUNSET);
    service = await startService(
      {
        API_V1_DEPRECATION_DATE: (await getDates()).deprecated_at.toISOString(),
        API_V1_SUNSET_DATE: SUNSET.toISOString(),
      },
      database,
    );
  });
  afterEach(async () => {
    await Promise.all([...dispatchers].map((dispatcher) => dispatcher.kill('SIGKILL')));
    dispatchers.clear();
    await mails.goAway();
  });

  type Dates = { deprecated_at: Date; notified_at: Date | null; reminded_sunset_at: Date | null };
  type Announcement = {
    occasion: string;
    user_id: number;
    mail_id: string | null;
    outcome: string | null;
  };

  async function getDates(): Promise<Dates> {
    const { rows } = await database.query<Dates>(
      'select deprecated_at, notified_at, reminded_sunset_at from api_retirements',
    );
    if (!rows[0]) throw new Error('nothing is announced');
    return rows[0];
  }

  const findAnnouncements = async () =>
    (
      await database.query<Announcement>(
        'select occasion, user_id, mail_id, outcome from api_retirement_announcements order by recorded_at, user_id',
      )
    ).rows;

  /** Creates a user whose token was used so long ago. @returns the e-mail address */
  async function createUser(daysAgo: number): Promise<string> {
    if (!service) throw new Error('the service is started before each test');
    const { email } = await service.newStore();
    await database.query(
      `update api_tokens t set last_used_at = now() - make_interval(days => $2)
       from users u where u.id = t.user_id and u.email = $1`,
      [email, daysAgo],
    );
    return email;
  }

  async function startDispatcher(settings: NodeJS.ProcessEnv = {}): Promise<Program> {
    const dispatcher = startProgram(
      'dist/apps/dispatcher/main.js',
      createTestEnvironment(database.url, {
        WEBHOOK_TIME_SCALE: '100',
        SMTP_URL: mails.url,
        MAIL_FROM: 'Inkpad <inkpad@shop.example>',
        LOG_LEVEL: 'info',
        ...settings,
      }),
    );
    dispatchers.add(dispatcher);
    await eventually(dispatcher.output, (text) => text.includes('started; health on port'));
    return dispatcher;
  }

  const stop = async (dispatcher: Program, signal: NodeJS.Signals) => {
    await dispatcher.kill(signal);
    dispatchers.delete(dispatcher);
  };
  const listRecipients = () => mails.received.map(({ to }) => to).sort();
  const waitUntilSent = () =>
    eventually(
      findAnnouncements,
      (all) => all.length > 0 && all.every(({ outcome }) => outcome === 'sent'),
    );
  const waitUntilNotified = () => eventually(getDates, ({ notified_at }) => notified_at !== null);
  /** Simulates that time has passed, by moving the end of the version. */
  const setSunset = (sunset: Date) =>
    database.query('update api_retirements set sunset_at = $1', [sunset]);

  it('get one mail at the announcement and one for each end date in the last 30 days, however often dispatchers start', async () => {
    const [often, now] = [await createUser(89), await createUser(0)];
    await createUser(91);
    const removedUser = await createUser(1);
    await service?.execute(new RemoveUser(cli, removedUser));
    await database.query(
      `insert into api_tokens (user_id, name, sha256, created_at, last_used_at)
       select user_id, 'second', sha256('second'), now(), now() from api_tokens t
       join users u on u.id = t.user_id where u.email = $1`,
      [often],
    );
    const first = await Promise.all([startDispatcher(), startDispatcher()]);
    await waitUntilNotified();
    await waitUntilSent();
    expect(listRecipients()).toEqual([often, now].sort());
    const mail = mails.received.find(({ to }) => to === often);
    expect(mail?.subject).toMatch(/^cards\.example: version v1 of the API ends on \d/);
    expect(mail?.text).toMatch(/- second, last on .*\n- till, last on /);

    await Promise.all(first.map((dispatcher) => stop(dispatcher, 'SIGTERM')));
    await createUser(0);
    const later = await startDispatcher();
    // The reminder also reaches users since the announcement.
    const [soon, sooner] = [daysFromNow(29), daysFromNow(20)];
    await setSunset(soon);
    await eventually(
      getDates,
      ({ reminded_sunset_at }) => reminded_sunset_at?.getTime() === soon.getTime(),
    );
    await waitUntilSent();
    expect(mails.received).toHaveLength(5);
    expect(mails.received.slice(2).every(({ subject }) => subject.startsWith('Reminder: '))).toBe(
      true,
    );
    expect(new Set(mails.received.slice(2).map(({ to }) => to)).size).toBe(3);

    // Another date causes another reminder, and the first one again none.
    await setSunset(sooner);
    await eventually(
      getDates,
      ({ reminded_sunset_at }) => reminded_sunset_at?.getTime() === sooner.getTime(),
    );
    await setSunset(soon);
    await eventually(
      getDates,
      ({ reminded_sunset_at }) => reminded_sunset_at?.getTime() === soon.getTime(),
    );
    await waitUntilSent();
    expect(mails.received).toHaveLength(8);
    await stop(later, 'SIGTERM');
  });

  it('get the mail once although the mail server was unavailable and a dispatcher was killed', async () => {
    const expected = [await createUser(1), await createUser(2)].sort();
    await mails.goAway();
    const first = await startDispatcher();
    await eventually(first.output, (text) => text.includes('could not be sent'));
    await stop(first, 'SIGKILL');
    const { rows } = await database.query<{ days: number }>(
      `select round(extract(epoch from give_up_at - created_at) / 86400)::int as days from outgoing_messages where kind = 'mail'`,
    );
    expect(rows).toEqual([{ days: 7 }, { days: 7 }]);
    expect((await findAnnouncements()).map(({ outcome }) => outcome)).toEqual([null, null]);
    await mails.comeBack();
    await database.query(`update outgoing_messages set due_at = now() where kind = 'mail'`);
    await startDispatcher();
    await waitUntilSent();
    expect(listRecipients()).toEqual(expected);
  });

  it('have one mail each in the outbox, all 900 of them, although a dispatcher was killed meanwhile', async () => {
    await database.query(
      `with u as (
         insert into users (email, email_key, name, password_hash, created_at)
         select 'user' || n || '@shop.example', 'user' || n || '@shop.example', 'User', 'x', now() from generate_series(1, 900) n returning id)
       insert into api_tokens (user_id, name, sha256, created_at, last_used_at)
       select id, 'till', sha256(id::text::bytea), now(), now() from u`,
    );
    await mails.goAway();
    const [first] = await Promise.all([startDispatcher(), startDispatcher()]);
    await eventually(findAnnouncements, (all) => all.length > 0);
    if (first) await stop(first, 'SIGKILL');
    await waitUntilNotified();
    const all = await findAnnouncements();
    expect([all.length, new Set(all.map(({ user_id }) => user_id)).size]).toEqual([900, 900]);
    const { rows } = await database.query(
      `select uuid as id from outgoing_messages where kind = 'mail'`,
    );
    expect(rows).toHaveLength(900);
    expect(new Set(all.map(({ mail_id }) => mail_id)).size).toBe(900);
  });

  it('are counted in the log and listed by retirement:announcements when no mail server is configured', async () => {
    const email = await createUser(3);
    const dispatcher = await startDispatcher({ SMTP_URL: '', MAIL_FROM: '' });
    await waitUntilNotified();
    const dispatcherOutput = await eventually(dispatcher.output, (text) =>
      text.includes('there is no mail'),
    );
    expect(
      dispatcherOutput.match(/a user is not told that a version is being retired/g),
    ).toHaveLength(1);
    expect(dispatcherOutput).not.toContain(email);
    const { output } = runNode(
      ['dist/apps/cli/cli.js', 'retirement:announcements'],
      createTestEnvironment(database.url),
    );
    expect(JSON.parse(output)).toMatchObject({
      occasion: 'announced',
      email,
      state: 'logged',
      mail_id: null,
    });
    // Once a mail server is configured, the announcement is not repeated.
    await stop(dispatcher, 'SIGTERM');
    await startDispatcher();
    await setSunset(daysFromNow(29));
    await eventually(findAnnouncements, (all) => all.length === 2 && all[1]?.outcome === 'sent');
    expect(mails.received.map(({ subject }) => subject.slice(0, 10))).toEqual(['Reminder: ']);
  });

  it('are notified of the current announcement, not of a withdrawn one', async () => {
    await createUser(1);
    await database.query('update api_retirements set withdrawn_at = now()');
    const { rows } = await database.query<{ id: number }>(
      `insert into api_retirements (version, announced_at, deprecated_at)
       values ('v1', now(), now()) returning id`,
    );
    await startDispatcher();
    await waitUntilSent();
    const sentAnnouncements = await database.query(
      'select retirement_id from api_retirement_announcements',
    );
    expect(sentAnnouncements.rows).toEqual([{ retirement_id: rows[0]?.id }]);
    expect(mails.received[0]?.text).toContain('Ends on: not decided yet.');
    // They get a mail once the date is decided.
    await setSunset(SUNSET);
    await eventually(findAnnouncements, (all) => all.length === 2 && all[1]?.outcome === 'sent');
    expect(mails.received[1]?.subject).toMatch(/ends on \d/);
  });
});
