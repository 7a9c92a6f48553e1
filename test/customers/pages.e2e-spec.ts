import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { AddMember } from '#identity/member.commands.js';
import type { Role } from '#identity/roles.js';
import { CreateUser } from '#identity/identity.commands.js';
import type { ExplanationJson } from '#loyalty/history/explanation.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { Browser, readFormKey } from '../support/browser/browser.js';
import { startGoogleWallet } from '../support/emulators/google/server.mjs';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let list: string;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore({ country: 'DE' });
  owner = await Browser.signedIn(service, store.email);
  list = `/app/stores/${store.accountId}/customers`;
});
afterAll(() => service.stop());

async function signInAs(role: Role): Promise<Browser> {
  const email = `${randomUUID()}@team.example`;
  await service.execute(new CreateUser(cli, email, `Mira <${role}>`, 'correct horse'));
  await service.execute(new AddMember(cli, store.accountId, email, role));
  return Browser.signedIn(service, email);
}

const getPerson = (id: number) => `${list}/${id}`;
const readCustomer = async (id: number) =>
  (await store.get<CustomerJson>(`${store.store}/customers/${id}`)).body;
const readCard = async ({ path }: Enrolled) => (await store.get<CustomerCardDetailJson>(path)).body;

/** Reads what the preview of a merge does not show afterwards. */
function readHidden(html: string): string[] {
  const [, values = ''] = /<dt>Not shown while merged<\/dt><dd>(.*?)<\/dd>/.exec(html) ?? [];
  return values.replaceAll('<wbr>', '').match(/[^>]+(?=<\/span>)/g) ?? [];
}

async function submitOnce(
  browser: Browser,
  page: string,
  action: string,
  fields: Record<string, string>,
) {
  const formKey = readFormKey((await browser.get(page)).text);
  const send = () => browser.submit(page, action, { form_key: formKey, ...fields });
  const responses = await Promise.all([send(), send()]);
  return [...responses, await send()];
}

describe('the customers of the console', () => {
  it('are added once, however often the form is sent', async () => {
    const form = { first_name: 'Anna <b>', email: 'anna@example.com', phone: '030 1234567' };
    const sent = await submitOnce(owner, `${list}/new`, list, form);
    const [{ location }] = sent as [(typeof sent)[number]];
    expect(location).toMatch(/customers\/\d+\?done=created$/);
    expect(sent.map((response) => [response.status, response.location])).toEqual(
      sent.map(() => [303, location]),
    );
    const { text } = await owner.get(location ?? '');
    expect(text).toContain('Anna &lt;b&gt;');
    expect(text).toContain('The customer has been added.');
    const repetition = await owner.submit(`${list}/new`, list, { ...form, first_name: 'Again' });
    expect(repetition.location).toBe(location?.replace('created', 'known'));
  });

  it('are not added without a name and an address, which the form explains', async () => {
    const refused = await owner.submit(`${list}/new`, list, { first_name: '', birth_day: '40' });
    expect(refused.status).toBe(422);
    expect(refused.text).toContain('Please fill in this field.');
    expect(refused.text).toContain('Birthday: This date does not exist. Please check it.');
    const addressless = await owner.submit(`${list}/new`, list, { first_name: 'Bo' });
    expect(addressless.text).toContain('Please enter an e-mail address or a phone number.');
  });

  it('are found near to a reward in a store with very many rewards', async () => {
    const other = await service.newStore();
    const browser = new Browser(service);
    await browser.signIn(other.email, 'correct horse');
    const first = await enrol(other, { rewards: [2] });
    await service.database.query(
      `insert into rewards (id, account_id, revision, hash, projection_version, state)
       select id + n, account_id, revision, hash, projection_version, state
       from rewards, generate_series(1000, 1300) n where id = $1`,
      [first.rewards[0]?.id],
    );
    const last = await enrol(other, {
      card: { name: 'Last', stamps_required: 20 },
      rewards: [5],
      customer: { first_name: 'Near', last_name: 'Last' },
    });
    await last.stamp(3);
    const path = `/app/stores/${other.accountId}/customers?near=yes`;
    expect((await browser.get(path)).text).toContain('Near Last');
  });

  it('are found by a search and by filters, page by page', async () => {
    const enrolled = await enrol(store, {
      card: { name: 'Tea', stamps_required: 10 },
      rewards: [['Free tea', 5]],
      customer: { first_name: 'Zoë', last_name: 'Filter', birthday: '1990-02-03' },
    });
    const find = async (query: string) => (await owner.get(`${list}?${query}`)).text;
    expect(await find('search=filter')).toContain('Zoë Filter');
    expect(await find('search=nobody-at-all')).toContain('Nobody found');
    expect(await find('search=%00filter&page=9999999999')).toContain('customer');
    expect(await find(`card_id=${enrolled.card.id}&near=yes`)).not.toContain('Zoë Filter');
    await enrolled.stamp(3);
    const near = await find(`card_id=${enrolled.card.id}&near=yes`);
    expect(near).toMatch(/Tea<\/span>[^]*3 of 10</);
    // Of all cards, however far each reward is, or of the one that is chosen.
    const far = await enrol(store, {
      card: { name: 'Long', stamps_required: 20 },
      rewards: [['Long reward', 12]],
      customer: { first_name: 'Far', last_name: 'Away' },
    });
    await far.stamp(8);
    const anyCard = await find('near=yes');
    expect(anyCard).toContain('Zoë Filter');
    expect(anyCard).not.toContain('Far Away');
    await far.stamp(2);
    expect(await find('near=yes')).toContain('Far Away');
    expect(await find(`near=yes&card_id=${enrolled.card.id}`)).not.toContain('Far Away');
    // Each filter is removed by itself.
    expect(near).toContain(`href="${list}?near=yes"`);
    expect(near).toContain(`href="${list}?card_id=${enrolled.card.id}"`);
    expect(await find('birthday_month=2')).toContain('Zoë Filter');
    expect(await find('birthday_month=3')).not.toContain('Zoë Filter');
    expect(await find('inactive=30')).not.toContain('Zoë Filter');
    for (let i = 0; i < 25; i++) {
      await store.post(`${store.store}/customers`, {
        customer: { first_name: 'Many', email: `many${i}@example.com` },
      });
    }
    const first = await find('search=Many');
    expect(first).not.toContain('rel="next"');
    const all = await find('');
    expect(all).toContain('Page 1 of 2');
    expect(await find('page=2')).toContain('rel="prev"');
  });

  it('are sorted by name, last activity and stamps, within a search', async () => {
    for (const [first_name, stamps] of [
      ['Zora', 1],
      ['Ärmel', 3],
      ['Bea', 2],
    ] as const) {
      const { stamp } = await enrol(store, { customer: { first_name, last_name: 'Sorted' } });
      await stamp(stamps);
    }
    await store.post(`${store.store}/customers`, {
      customer: { first_name: 'Nil', last_name: 'Sorted', email: 'none@example.com' },
    });
    const listNames = async (sort: string) => {
      const { text } = await owner.get(`${list}?search=sorted&sort=${sort}`);
      return [...text.matchAll(/>(\S+) Sorted</g)].map(([, name]) => name);
    };
    expect(await listNames('newest')).toEqual(['Nil', 'Bea', 'Ärmel', 'Zora']);
    expect(await listNames('name')).toEqual(['Ärmel', 'Bea', 'Nil', 'Zora']);
    expect(await listNames('active')).toEqual(['Bea', 'Ärmel', 'Zora', 'Nil']);
    expect(await listNames('stamps')).toEqual(['Ärmel', 'Bea', 'Zora', 'Nil']);
    // A page leads to the next one in the same order, and a search keeps it.
    const { text } = await owner.get(`${list}?sort=name`);
    expect(text).toMatch(/rel="next" href="[^"]*\?sort=name&(amp;)?page=2"/);
    expect(text).toContain('<input type="hidden" name="sort" value="name">');
  });

  it('are each on one page of a sorted list, the erased and those without a card last', async () => {
    const sorted = await service.newStore();
    const paths: string[] = [];
    for (let i = 0; i < 27; i++) {
      const { path, stamp } = await enrol(sorted, { customer: { first_name: `Guest ${i % 3}` } });
      await stamp(i === 5 ? 9 : 1 + (i % 2));
      paths.push(path.replace(/[/]customer_cards.*/, ''));
    }
    expect((await sorted.post(`${paths[5]}/erase`)).status).toBe(204);
    const browser = await Browser.signedIn(service, sorted.email);
    const listIds = async (sort: string, page: number) => {
      const { text } = await browser.get(
        `/app/stores/${sorted.accountId}/customers?sort=${sort}&page=${page}`,
      );
      return [...text.matchAll(/class="entry" href="[^"]*[/]customers[/](\d+)"/g)].map(
        ([, id]) => id,
      );
    };
    const all = paths.map((path) => path.split('/').at(-1)).sort();
    for (const sort of ['name', 'active', 'stamps']) {
      const ids = [...(await listIds(sort, 1)), ...(await listIds(sort, 2))];
      expect([sort, [...ids].sort()]).toEqual([sort, all]);
      expect([sort, ids.at(-1)]).toEqual([sort, paths[5]?.split('/').at(-1)]);
      expect(await listIds(sort, 3)).toEqual([]);
    }
  });

  it('are edited by the fields that were changed', async () => {
    const { customer } = await enrol(store, {
      customer: { first_name: 'Carl', phone: '+4915112345678', sms_consent: true },
    });
    const page = getPerson(customer.id);
    const before = await readCustomer(customer.id);
    const saved = await owner.submit(`${page}/edit`, `${page}/edit`, {
      first_name: 'Karl',
      email: before.email ?? '',
      phone: before.phone ?? '',
      birth_day: '31',
      birth_month: '5',
      birth_year: '1990',
      marketing_consent: 'yes',
    });
    expect(saved.location).toBe(`${page}?done=saved`);
    expect((await owner.get(`${page}?done=saved`)).text).toMatch(
      /The details of Karl[^<]* are saved\./,
    );
    expect(await readCustomer(customer.id)).toMatchObject({
      first_name: 'Karl',
      birthday: '1990-05-31',
      marketing_consent: true,
      sms_consent: false,
    });
    const wrong = await owner.submit(`${page}/edit`, `${page}/edit`, { first_name: '' });
    expect(wrong.status).toBe(422);
  });

  it('get another card, and the link to one again', async () => {
    const { customer, customerCard } = await enrol(store);
    const otherHolder = await enrol(store, { card: { name: 'Lunch' } });
    const page = getPerson(customer.id);
    const card_id = String(otherHolder.card.id);
    const sent = await submitOnce(owner, page, `${page}/cards`, { card_id });
    const done = sent[0]?.location ?? '';
    expect(done).toMatch(/\?done=enrolled&card=\d+$/);
    expect(sent.map(({ location }) => location)).toEqual(sent.map(() => done));
    expect((await owner.get(done)).text).toContain('The customer has the card “Lunch” now.');
    const again = await owner.submit(page, `${page}/cards`, { card_id, form_key: 'other' });
    expect(again.text).toContain('The customer has this card already.');
    const path = `${store.store}/cards/${(await enrol(store)).card.id}`;
    await store.send('PATCH', path, { card: { expires_at: '2020-01-01' } });
    const expired = { card_id: path.split('/').at(-1) ?? '', form_key: 'expired' };
    expect((await owner.submit(page, `${page}/cards`, expired)).text).toContain(
      'This card has expired: new customers no longer get it.',
    );
    const german = { 'accept-language': 'de' };
    expect((await owner.submit(page, `${page}/cards`, expired, german)).text).toContain(
      'Diese Karte ist abgelaufen: Neue Kunden bekommen sie nicht mehr.',
    );
    const link = `${page}/cards/${customerCard.id}/send_link`;
    expect((await owner.submit(page, link)).location).toBe(`${page}?done=sent`);
    const repeated = await owner.submit(page, link, { form_key: 'repeated' });
    expect(repeated.location).toBe(`${page}?done=notSent`);
    expect((await owner.get(page)).text).toContain('Link to the card requested');
  });

  it('are handed their card by a QR code or a copied link where no message can be sent', async () => {
    const { customer, customerCard } = await enrol(store, {
      customer: { email: 'keya@x.example' },
    });
    const { text } = await owner.get(`${getPerson(customer.id)}?done=sent`);
    expect(text).toContain('Show QR code');
    expect(text).toContain(`data-text="https://cards.example/passes/${customerCard.uuid}"`);
    expect(text).not.toContain('Send the link again');
    expect(text).not.toContain('on its way');
    const form = (await owner.get(`${list}/new`)).text;
    expect(form).not.toContain('name="send_link"');
    expect(form).toContain('This service sends no e-mails or SMS.');
  });

  it('are stamped and redeem on their page, once for each form', async () => {
    const enrolled = await enrol(store, { rewards: [['Cake <i>', 2]] });
    await enrolled.stamp(1);
    const page = getPerson(enrolled.customer.id);
    const card = `${page}/cards/${enrolled.customerCard.id}`;
    const before = (await owner.get(page)).text;
    expect([before.includes('Add a stamp'), before.includes('/redeem"')]).toEqual([true, false]);
    const staff = await signInAs('staff');
    const stamped = await submitOnce(staff, page, `${card}/stamp`, {});
    expect(stamped.map(({ location }) => location)).toEqual(
      stamped.map(() => `${page}?done=stamped&card=${enrolled.customerCard.id}`),
    );
    expect((await readCard(enrolled)).stamps_count).toBe(2);
    expect((await staff.get(page)).text).toContain('Redeem Cake &lt;i&gt; (uses 2 stamps)');
    const reward_id = String(enrolled.rewards[0]?.id);
    const redeemed = await submitOnce(staff, page, `${card}/redeem`, { reward_id });
    const done = `${page}?done=redeemed&card=${enrolled.customerCard.id}`;
    expect(redeemed.map(({ location }) => location)).toEqual(redeemed.map(() => done));
    const { text } = await staff.get(done);
    expect([text.includes('Hand it over'), text.includes('/redeem"')]).toEqual([true, false]);
    const late = await staff.submit(page, `${card}/redeem`, { reward_id, form_key: 'late' });
    expect([late.status, late.text.includes('There are not enough')]).toEqual([422, true]);
    const cardPath = `${store.store}/cards/${enrolled.card.id}`;
    await store.send('PATCH', cardPath, { card: { expires_at: '2020-01-01' } });
    expect((await staff.get(page)).text).not.toContain('Add a stamp');
  });

  it('have their balance explained and corrected for a reason, once', async () => {
    const enrolled = await enrol(store, { rewards: [['Cake <i>', 5]] });
    await enrolled.stamp(2);
    const page = getPerson(enrolled.customer.id);
    const adjust = `${page}/cards/${enrolled.customerCard.id}/adjust`;
    const reason = 'The till was closed';
    const fields = { direction: 'add', stamps: '3', reason: 'other', other: reason };
    const sent = await submitOnce(owner, adjust, adjust, fields);
    expect(sent.map(({ location }) => location)).toEqual(
      sent.map(() => `${page}?done=corrected&card=${enrolled.customerCard.id}`),
    );
    expect((await readCard(enrolled)).stamps_count).toBe(5);
    const { text } = await owner.get(`${page}/cards/${enrolled.customerCard.id}/explain`);
    expect(text).toContain(reason);
    expect(text).toContain('Cake &lt;i&gt;');
    const form = (await owner.get(adjust)).text;
    expect(form.match(/<input type="radio"[^>]* checked/g)).toHaveLength(1);
    for (const [direction, reason] of [
      ['remove', 'forgotten'],
      ['add', 'twice'],
      ['add', 'returned'],
    ] as const) {
      const unfit = await owner.submit(adjust, adjust, { direction, stamps: '1', reason });
      expect([unfit.status, unfit.text.includes('Please fill in this field.')]).toEqual([
        422,
        true,
      ]);
    }
    const takeOff = { direction: 'remove', stamps: '9', reason: 'twice' };
    expect((await owner.submit(adjust, adjust, takeOff)).text).toContain('There are not enough');
    const nothing = { direction: 'add', stamps: '0', reason: 'other', other: ' ' };
    const refused = await owner.submit(adjust, adjust, nothing);
    expect(refused.text).toContain('Please enter 1 or more.');
    expect(refused.text).toContain('Please fill in this field.');
  });

  it('have a balance explained by what changed it, and receipts only of a till', async () => {
    const rewards: [string, number][] = [
      ['Muffin', 2],
      ['Cake', 5],
    ];
    const enrolled = await enrol(store, { rewards });
    await enrolled.stamp(4, { external_ref: 'R-77' });
    const page = getPerson(enrolled.customer.id);
    const card = `${page}/cards/${enrolled.customerCard.id}`;
    const counter = `/counter/${store.accountId}`;
    const scan = { code: enrolled.customerCard.code, external_ref: 'counter-scan', again: 'yes' };
    await owner.submit(counter, `${counter}/stamp`, scan);
    const ready = (await owner.get(`${card}/explain`)).text;
    expect(ready.match(/Ready to redeem/g)).toHaveLength(2);
    expect(ready).toContain('R-77');
    await owner.submit(page, `${card}/redeem`, { reward_id: String(enrolled.rewards[1]?.id) });
    await enrolled.stamp(1);
    // As when somebody known signs up again.
    expect((await owner.submit(page, `${card}/send_link`, {})).status).toBe(303);
    const texts = [(await owner.get(`${card}/explain`)).text, (await owner.get(page)).text];
    for (const text of texts) expect(text).not.toMatch(/counter-scan|card_links_requested/);
    expect(texts[0]).toContain('1 stamp now');
    expect(texts[0]).toContain('>−5<');
    expect(texts[0]).toContain('Reached before, then its stamps went into another reward');
    const { body } = await store.get<ExplanationJson>(`${enrolled.path}/explain`);
    expect(body.balance).toBe(1);
    expect(body.steps.map(({ balance }) => balance)).toEqual([0, 4, 4, 5, 5, 0, 1]);
  });

  it('have an entry undone with a reason, once', async () => {
    const enrolled = await enrol(store);
    await enrolled.stamp(2);
    const page = getPerson(enrolled.customer.id);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const form = (await owner.get(undo)).text;
    expect(form).toContain('+2 stamps');
    expect(form).not.toMatch(/<input type="radio"[^>]* checked/);
    const unexplained = await owner.submit(undo, undo, { reason: 'other', other: '' });
    expect(unexplained.status).toBe(422);
    const sent = await submitOnce(owner, undo, undo, { reason: 'wrong_card', other: '' });
    expect(sent.map(({ location }) => location)).toEqual(
      sent.map(() => `${page}?done=undone&card=${enrolled.customerCard.id}`),
    );
    expect((await readCard(enrolled)).stamps_count).toBe(0);
    const { text } = await owner.get(page);
    expect(text).toContain('Wrong card');
    expect(text).not.toContain('/undo"');
    const again = await owner.submit(undo, undo, { reason: 'twice', other: '' });
    expect(again.text).toContain('This was undone already.');
  });

  it('name the redemption to undo before an entry whose stamps it spent', async () => {
    const enrolled = await enrol(store, { rewards: [['Cake', 2]] });
    await enrolled.stamp(2);
    const page = getPerson(enrolled.customer.id);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const reward_id = String(enrolled.rewards[0]?.id);
    await owner.submit(page, `${page}/cards/${enrolled.customerCard.id}/redeem`, { reward_id });
    await owner.get(page);
    const refused = await owner.post(undo, { reason: 'twice', other: '' });
    expect(refused.status).toBe(422);
    const { text } = await owner.get(undo);
    for (const html of [text, refused.text]) {
      expect(html).toContain('have been spent. First undo: Redeemed: Cake (2 stamps)');
      expect(html).not.toContain('name="reason"');
    }
    const first = /class="button" href="([^"]*\/undo)"/.exec(text)?.[1] ?? '';
    await owner.submit(first, first, { reason: 'twice', other: '' });
    expect((await owner.get(undo)).text).toContain('name="reason"');
    await owner.submit(undo, undo, { reason: 'twice', other: '' });
    expect((await readCard(enrolled)).stamps_count).toBe(0);
  });

  it('unfold the last twenty steps of a balance', async () => {
    const enrolled = await enrol(store);
    const page = `${getPerson(enrolled.customer.id)}/cards/${enrolled.customerCard.id}/explain`;
    const countRows = (text: string) => text.split(/<tr><td/).length - 1;
    await enrolled.stamp(1);
    const short = (await owner.get(page)).text;
    expect([short.includes('<details class="panel"'), countRows(short)]).toEqual([false, 2]);
    for (let i = 0; i < 21; i++) await enrolled.stamp(1);
    const [folded = '', unfolded = ''] = (await owner.get(page)).text.split('</details>\n<section');
    expect(folded).toContain('<summary>Earlier</summary>');
    expect([countRows(folded), countRows(unfolded)]).toEqual([3, 20]);
  });

  it('name no redemption from before an entry whose stamps a correction took off', async () => {
    const enrolled = await enrol(store, { rewards: [['Cake', 2]] });
    const page = getPerson(enrolled.customer.id);
    const card = `${page}/cards/${enrolled.customerCard.id}`;
    await enrolled.stamp(2);
    const reward_id = String(enrolled.rewards[0]?.id);
    await owner.submit(page, `${card}/redeem`, { reward_id });
    await enrolled.stamp(2);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const takeOff = { direction: 'remove', stamps: '2', reason: 'twice' };
    await owner.submit(`${card}/adjust`, `${card}/adjust`, takeOff);
    const refused = await owner.submit(undo, undo, { reason: 'twice', other: '' });
    expect(refused.status).toBe(422);
    expect(refused.text).toContain('There are not enough stamps on the card for this.');
    expect(refused.text).not.toContain('First undo');
    expect((await readCard(enrolled)).stamps_count).toBe(0);
  });

  it('are merged after a preview, and separated again', async () => {
    const holder = await enrol(store, { customer: { first_name: 'Dora' } });
    const { body: otherCustomer } = await store.post<CustomerJson>(`${store.store}/customers`, {
      customer: {
        first_name: 'Dora',
        last_name: 'Double',
        phone: '+4915199999999',
        email: 'double@example.org',
      },
      card_id: holder.card.id,
    });
    await holder.stamp(2);
    const [card] = (await readCustomer(otherCustomer.id)).customer_cards;
    await store.stamp(`${store.store}/customers/${otherCustomer.id}/customer_cards/${card?.id}`, 3);
    const page = getPerson(holder.customer.id);
    expect((await owner.get(`${page}/merge?search=double`)).text).toContain('Dora Double');
    const merge = `${page}/merge/${otherCustomer.id}`;
    const { text } = await owner.get(merge);
    expect(text).toContain('2 + 3 = 5 stamps');
    expect(text).toContain('Phone: +4915199999999');
    expect(readHidden(text)).toEqual(['E-mail: double@example.org']);
    const swapped = `${getPerson(otherCustomer.id)}/merge/${holder.customer.id}`;
    expect(readHidden((await owner.get(swapped)).text)).toEqual([
      `E-mail: ${holder.customer.email}`,
    ]);
    const sent = await submitOnce(owner, merge, merge, {});
    expect(sent.map(({ location }) => location)).toEqual(sent.map(() => `${page}?done=merged`));
    expect(await readCustomer(holder.customer.id)).toMatchObject({ stamp_count: 5 });
    expect((await owner.get(getPerson(otherCustomer.id))).text).toContain(
      'was merged into another one',
    );
    const refused = await owner.get(merge);
    expect([refused.status, refused.text.includes('merged into another')]).toEqual([422, true]);
    const unmerge = /href="([^"]*\/unmerge\/\d+)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const separated = await submitOnce(owner, unmerge, unmerge, {});
    expect(separated.map(({ location }) => location)).toEqual(
      separated.map(() => `${page}?done=unmerged`),
    );
    expect(await readCustomer(holder.customer.id)).toMatchObject({ stamp_count: 2 });
    // Refused, it offers to merge the two: by a form of its own, or it would be taken for one from before.
    const late = await owner.submit(unmerge, unmerge, { form_key: 'another' });
    expect([late.status, readFormKey(late.text)]).toEqual([422, expect.stringMatching(/.+/)]);
  });

  it('are previewed with each value of the other entry that the merged customer does not show', async () => {
    const { customer } = await enrol(store, {
      customer: { first_name: 'Dorothea', last_name: 'Stays', phone: '+4915188888881' },
    });
    const { body: other } = await store.post<CustomerJson>(`${store.store}/customers`, {
      customer: {
        first_name: 'Thea',
        last_name: 'Ends',
        phone: '+4915188888882',
        birthday: '1990-02-03',
      },
    });
    const merge = `${getPerson(customer.id)}/merge/${other.id}`;
    const preview = (await owner.get(merge)).text;
    expect(preview).toContain('Birthday: 1990-02-03');
    const names = ['First name: Thea', 'Last name: Ends'];
    expect(readHidden(preview)).toEqual([...names, 'Phone: +4915188888882']);
    await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
      customer: { birthday: '1991-03-04' },
    });
    expect(readHidden((await owner.get(merge)).text).at(-1)).toBe('Birthday: 1990-02-03');
  });

  it('are exported and erased', async () => {
    const { customer, customerCard, stamp } = await enrol(store, {
      customer: { first_name: 'Ephraim' },
    });
    await stamp(2);
    const page = getPerson(customer.id);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const exported = await owner.get(`${page}/export`);
    expect(JSON.parse(exported.text)).toMatchObject({ customer: { first_name: 'Ephraim' } });
    expect((await owner.get(`${page}/erase`)).text).toContain('Ephraim');
    const erased = await owner.submit(`${page}/erase`, `${page}/erase`);
    expect(erased.location).toBe(`${list}?done=erased`);
    expect((await owner.get(list)).text).toMatch(/ customers, [0-9]+ of them erased/);
    expect((await owner.get(`${list}?search=Ephraim`)).text).not.toContain('of them erased');
    const { text } = await owner.get(page);
    expect(text).toContain('Erased customer');
    expect(text).not.toContain('Ephraim');
    const history = `/app/stores/${store.accountId}/history?customer_id=${customer.id}`;
    for (const html of [text, (await owner.get(history)).text]) {
      expect(html).toContain('+2 stamps');
      expect(html).not.toMatch(/href="[^"]*\/(adjust|undo|edit|merge)"/);
    }
    const adjust = `${page}/cards/${customerCard.id}/adjust`;
    for (const form of [`${page}/edit`, `${page}/merge`, `${page}/erase`, adjust, undo]) {
      expect([form, (await owner.get(form)).location]).toEqual([form, page]);
    }
    for (const form of [`${page}/edit`, adjust, undo]) {
      const fields = { first_name: 'Back', stamps: '1', reason: 'other', other: 'Late' };
      expect([form, (await owner.submit(page, form, fields)).location]).toEqual([form, page]);
    }
  });

  it('are served to staff without what only managers may do', async () => {
    const staff = await signInAs('staff');
    const enrolled = await enrol(store, { customer: { first_name: 'Frida' } });
    await enrolled.stamp(1);
    const page = getPerson(enrolled.customer.id);
    const card = `${page}/cards/${enrolled.customerCard.id}`;
    const { text } = await staff.get(page);
    expect(text).toContain('+1 stamp');
    for (const path of ['/adjust', '/merge', '/export', '/erase', '/undo', 'history']) {
      expect([path, text.includes(`${path}"`)]).toEqual([path, false]);
    }
    for (const path of [`${card}/adjust`, `${page}/merge`, `${page}/export`, `${page}/erase`]) {
      expect([path, (await staff.get(path)).status]).toEqual([path, 403]);
    }
    for (const path of [`${card}/adjust`, `${page}/merge/1`, `${page}/erase`]) {
      expect([path, (await staff.submit(page, path)).status]).toEqual([path, 403]);
    }
    expect((await staff.get(`/app/stores/${store.accountId}/history`)).status).toBe(403);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const refused = await staff.submit(undo, undo, { reason: 'twice', other: '' });
    expect([refused.status, refused.text.includes('Staff can undo only')]).toEqual([422, true]);
    expect((await readCard(enrolled)).stamps_count).toBe(1);
  });

  it('are said to have a card in no wallet only where the service has wallets', async () => {
    const google = await startGoogleWallet();
    const withWallets = await startService(google.environment);
    try {
      for (const running of [service, withWallets]) {
        const shop = await running.newStore();
        const { customer } = await enrol(shop);
        const browser = await Browser.signedIn(running, shop.email);
        const page = `/app/stores/${shop.accountId}/customers/${customer.id}`;
        const { text } = await browser.get(page);
        expect(text.includes('Not in a wallet')).toBe(running === withWallets);
      }
    } finally {
      await withWallets.stop();
      await google.stop();
    }
  });

  it('are not served to users of other stores', async () => {
    const enrolled = await enrol(store);
    await enrolled.stamp(1);
    const page = getPerson(enrolled.customer.id);
    const undo = /href="([^"]*\/undo)"/.exec((await owner.get(page)).text)?.[1] ?? '';
    const otherStore = await service.newStore();
    const stranger = await Browser.signedIn(service, otherStore.email);
    const theirs = `/app/stores/${otherStore.accountId}/customers`;
    const card = `cards/${enrolled.customerCard.id}`;
    const event = undo.slice(undo.indexOf('/events/'));
    const paths = ['', '/edit', '/merge', '/erase', '/export', `/${card}/adjust`];
    for (const path of [...paths, `/${card}/explain`, `/${card}${event}`]) {
      const moved = `${theirs}/${enrolled.customer.id}${path}`;
      expect([path, (await stranger.get(page + path)).status]).toEqual([path, 404]);
      expect([path, (await stranger.get(moved)).status]).toEqual([path, 404]);
    }
    const forms = {
      [`/${card}/stamp`]: 404,
      [`/${card}/redeem`]: 404,
      '/edit': 404,
      '/cards': 404,
      [`/${card}/adjust`]: 404,
      '/erase': 404,
    };
    for (const [path, status] of Object.entries({ ...forms, [`/${card}${event}`]: 404 })) {
      const fields = { first_name: 'Theirs', stamps: '1', reason: 'twice', card_id: '1' };
      const moved = `${theirs}/${enrolled.customer.id}${path}`;
      expect([path, (await stranger.submit(`${theirs}/new`, moved, fields)).status]).toEqual([
        path,
        status,
      ]);
    }
    const history = `/app/stores/${otherStore.accountId}/history?customer_id=${enrolled.customer.id}`;
    expect((await stranger.get(history)).status).toBe(404);
    expect((await readCard(enrolled)).stamps_count).toBe(1);
  });
});

describe('the history of the console', () => {
  it('shows what happened in words, with who did it and where', async () => {
    const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location: { name: 'Old Town', address: 'Marktplatz 1, Hamburg' },
    });
    const enrolled = await enrol(store, {
      card: { name: 'Pie' },
      customer: { first_name: 'Greta', last_name: 'Historic' },
    });
    await enrolled.stamp(2, { location_id: location.id, staff_ref: 'Kim', note: 'From a friend' });
    const history = `/app/stores/${store.accountId}/history`;
    const { text } = await owner.get(history);
    for (const part of ['+2 stamps', 'Greta Historic', 'Old Town', 'Kim', 'till']) {
      expect(text).toContain(part);
    }
    expect(text).toContain('From a friend');
    const find = async (query: string) => (await owner.get(`${history}?${query}`)).text;
    const about = `customer_id=${enrolled.customer.id}`;
    expect(await find(about)).toContain('<bdi>Greta Historic</bdi>');
    const narrowed = await find(`${about}&type=customer.created`);
    expect(narrowed).not.toContain('+2 stamps');
    expect(narrowed).toContain(`<a class="chip" href="${history}?${about}">`);
    expect(narrowed).toContain(`<a class="chip" href="${history}?type=customer.created">`);
    expect(await find(`card_id=${enrolled.card.id}`)).toContain('+2 stamps');
    expect(await find(`location_id=${location.id}`)).toContain('+2 stamps');
    expect(await find('actor=system:0')).not.toContain('+2 stamps');
    expect(await find('to=2020-01-01')).toContain('Nothing matches these filters');
    expect(await find('type=%00%27&after=9999999999999999-1')).toContain(
      'Nothing matches these filters',
    );
    expect(await find('from=2020-01-01&to=nonsense&after=x')).toContain('+2 stamps');
  });

  it('says which card, and shows receipts of tills only', async () => {
    const enrolled = await enrol(store, { card: { name: 'Ice', stamps_required: 10 } });
    await enrolled.stamp(2, { external_ref: 'R-1042' });
    const counter = `/counter/${store.accountId}`;
    await owner.submit(counter, `${counter}/stamp`, {
      code: enrolled.customerCard.code,
      again: 'yes',
    });
    const { text } = await owner.get(getPerson(enrolled.customer.id));
    expect(text).toMatch(/\+1 stamp<\/span> · <bdi>Ice<\/bdi> <span class="soft">– then 3 of 10/);
    expect(text).toContain('Counter · ');
    expect(text).toContain('Receipt R-1042');
    expect(text).not.toContain('Receipt counter-');
    await store.post(`${store.store}/cards/${enrolled.card.id}/archive`, {});
    const { text: history } = await owner.get(`/app/stores/${store.accountId}/history`);
    expect(history).toContain('Card archived: Ice');
  });

  it('has pages that lead to everything once', async () => {
    const { newEmpty, seen } = { newEmpty: await service.newStore(), seen: [] as string[] };
    const reader = await Browser.signedIn(service, newEmpty.email);
    for (let i = 0; i < 60; i++) {
      await newEmpty.post(`${newEmpty.store}/customers`, {
        customer: { first_name: `Guest${i}x`, email: `guest${i}@example.com` },
      });
    }
    let path = `/app/stores/${newEmpty.accountId}/history?type=customer.created`;
    for (; path !== '';) {
      const { text } = await reader.get(path);
      seen.push(...(text.match(/Guest\d+x/g) ?? []));
      path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    }
    expect(seen).toHaveLength(60);
    expect(new Set(seen).size).toBe(60);
  });

  it('is in the language of the browser', async () => {
    const { text } = await owner.get(list, { 'accept-language': 'de' });
    expect(text).toContain('Kunden anlegen');
    const history = `/app/stores/${store.accountId}/history`;
    expect((await owner.get(history, { 'accept-language': 'fr' })).text).toContain('Historique');
    expect((await owner.get(history, { 'accept-language': 'es' })).text).toContain('Historial');
  });
});
