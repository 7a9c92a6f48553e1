import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { ListedRedemptionJson } from '#loyalty/history/redemption.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type {
  CustomerCardDetailJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let customers: string;

beforeAll(async () => {
  customers = `${store.store}/customers`;
});

const INVISIBLE = [
  '\u200B',
  '\u200D',
  '\u200E',
  '\u202A',
  '\u2060',
  '\uFEFF',
  '\u00AD',
  '\u034F',
  '\u115F',
  '\u3164',
  '\uFFA0',
  '\u2800',
];

let people = 0;
const address = () => `text${++people}@mail.example`;

const post = (customer: object) =>
  store.post<CreatedCustomerJson>(customers, { customer: { first_name: 'Ada', ...customer } });

async function create(customer: object): Promise<CreatedCustomerJson> {
  const { status, body } = await post(customer);
  expect([status, body]).toEqual([201, expect.anything()]);
  return body;
}

async function findIds(query: Record<string, string>): Promise<number[]> {
  const path = `${customers}?${new URLSearchParams(query)}`;
  const { status, body } = await store.get<CustomerListJson>(path);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body.customers.map(({ id }) => id);
}

async function cardNamed(name: string): Promise<string> {
  const { status, body } = await store.post<CardJson>(`${store.store}/cards`, { card: { name } });
  expect(status).toBe(201);
  return body.name;
}

describe('a text that is sent', () => {
  it('CONV-49 Invisible characters count as nothing at both ends of a text, and a text of nothing else is blank', async () => {
    for (const character of INVISIBLE) {
      expect(await cardNamed(`${character} Coffee ${character}`)).toBe('Coffee');
      for (const blank of [character, ` ${character} `, character + character]) {
        const customer = { first_name: blank, email: address() };
        expectRefused(await post(customer), 'first_name');
        expectRefused(await store.post(`${store.store}/cards`, { card: { name: blank } }), 'name');
        const response = await create({ last_name: blank, email: address(), phone: blank });
        expect([response.last_name, response.phone]).toEqual([null, null]);
        expectRefused(await post({ email: blank, phone: blank }), 'base');
      }
    }
    const { path } = await enrol(store);
    const noted = await store.stamp(path, { stamps: '\u200E1\u200E', note: '\u3164' });
    expect([noted.status, noted.body.stamps_count]).toEqual([200, 1]);
    const born = await create({ email: address(), birthday: '\u200E1990-05-31\u200E' });
    expect(born.birthday).toBe('1990-05-31');
    const colored = await store.post<CardJson>(`${store.store}/cards`, {
      card: {
        name: 'Tea',
        card_color: '#fff\u200B',
        auxiliary_fields: [{ value: '\u3164' }],
        expires_at: '\u200E2036-01-31T12:00:00Z\u200B',
      },
    });
    expect(colored.body.expires_at).toBe('2036-01-31T12:00:00.000Z');
    expect([colored.body.card_color, colored.body.auxiliary_fields]).toEqual(['#FFFFFF', []]);
  });

  it('CONV-50 Invisible characters stay inside a text, and where they belong to its last visible character', async () => {
    for (const name of [
      '👨‍👩‍👧',
      'Love ❤\uFE0F',
      '🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}',
      'نیم\u200Cفاصله',
      'മോഹന്\u200D',
      'Café \u200Fשלום\u200E Bar',
      'Donau\u00ADdampf',
    ]) {
      expect(await cardNamed(`\u200B${name}\u200B`)).toBe(name);
    }
    const { id } = await create({ first_name: 'نیم\u200Cفاصله', email: address() });
    expect(await findIds({ search: 'نیم\u200Cفاصله' })).toEqual([id]);
    expect(await findIds({ search: 'نیمفاصله' })).toEqual([id]);
  });

  it('CONV-51 Invisible characters count as nothing anywhere in e-mail addresses, phone numbers, external ids, receipt numbers (`external_ref`), card codes and search terms', async () => {
    for (const character of INVISIBLE) {
      const email = address();
      const phone = `+49151700${String(people).padStart(5, '0')}`;
      const response = await create({
        email: `${character}${email.replace('@', `@${character}`)}${character}`,
        phone: `${character}${phone.slice(0, 6)}${character} ${phone.slice(6)}${character}`,
        external_references: [
          { source: 'pos', external_id: `A-${character}${people}${character}` },
        ],
      });
      expect([response.email, response.phone]).toEqual([email, phone]);
      expect(response.external_references[0]?.external_id).toBe(`A-${people}`);
      expectRefused(await post({ email }), 'email', 'taken');
      expectRefused(
        await post({ email: address(), phone: `${phone}${character}` }),
        'phone',
        'taken',
      );
      const again = [{ source: 'pos', external_id: `${character}A-${people - 1}` }];
      expectRefused(
        await post({ email: address(), external_references: again }),
        'external_references',
        'taken',
      );
      const id = `A-${people - 2}`;
      for (const query of [
        { email: `${email}${character}` },
        { phone: `${character}${phone}` },
        { source: `pos${character}`, external_id: `${character}${id}` },
        { search: `${email.slice(0, 4)}${character}${email.slice(4)}` },
        { search: `${character}${phone.slice(3)}${character}` },
        { search: `${id}${character}` },
      ]) {
        expect([query, await findIds(query)]).toEqual([query, [response.id]]);
      }
    }
    const { path, customer, customerCard, rewards } = await enrol(store, { rewards: [1] });
    const { code } = customerCard;
    const hidden = `\u2066${code.slice(0, 4)}\u200B${code.slice(4)}\u2069`;
    expect(await findIds({ code: hidden })).toEqual([customer.id]);
    expect(await findIds({ search: hidden })).toEqual([customer.id]);
    const byCode = `${store.store}/customer_cards/by_code/${encodeURIComponent(hidden)}`;
    expect((await store.get<CustomerCardDetailJson>(byCode)).body.id).toBe(customerCard.id);
    const stamp = async (external_ref: string) => {
      const { body } = await store.stamp(path, { external_ref });
      return body.stamps_count;
    };
    expect(await stamp('R-1')).toBe(1);
    for (const character of INVISIBLE) {
      for (const ref of [`R-1${character}`, `${character}R-1`, `R${character}-1\r\n`]) {
        expect(await stamp(ref)).toBe(1);
      }
    }
    const redeem = { reward_id: rewards[0]?.id, external_ref: 'R-2\u200B' };
    const { body } = await store.post<RedemptionJson>(`${path}/redeem`, redeem);
    expect(body.redemption.external_ref).toBe('R-2');
    const listed = await store.get<ListedRedemptionJson[]>(
      `${store.store}/redemptions?${new URLSearchParams({ external_ref: '\u200ER-2' })}`,
    );
    expect(listed.body.map(({ id }) => id)).toEqual([body.redemption.id]);
  });

  it("CONV-52 Texts are stored in Unicode's form NFC", async () => {
    expect(await cardNamed('Cafe\u0301')).toBe('Café');
    const email = `jose\u0301${address()}`;
    const response = await create({
      first_name: 'Jose\u0301',
      email,
      external_references: [{ source: 'pos', external_id: 'E\u0301-1' }],
    });
    expect([response.first_name, response.email]).toEqual(['José', email.normalize('NFC')]);
    expect(response.external_references[0]?.external_id).toBe('É-1');
    expectRefused(await post({ email: email.normalize('NFC') }), 'email', 'taken');
    const same = [{ source: 'pos', external_id: 'É-1' }];
    expectRefused(
      await post({ email: address(), external_references: same }),
      'external_references',
      'taken',
    );
    for (const query of [
      { email },
      { email: email.normalize('NFC') },
      { source: 'pos', external_id: 'E\u0301-1' },
      { search: 'E\u0301-1' },
      { search: 'jose\u0301' },
    ]) {
      expect(await findIds(query)).toEqual([response.id]);
    }
    const { path } = await enrol(store);
    for (const external_ref of ['re\u0301f', 'réf']) {
      const { body } = await store.stamp(path, { external_ref });
      expect(body.stamps_count).toBe(1);
    }
  });

  it('CONV-53 Decimal digits of any script, and the wide plus `＋`, are read as ASCII in phone numbers, card codes, numbers and times', async () => {
    const { id, phone } = await create({ phone: '＋４９ １５１ ٧٧٧ ०००११' });
    expect(phone).toBe('+4915177700011');
    expectRefused(await post({ phone: '+4915177700011' }), 'phone', 'taken');
    for (const query of [
      { phone: '+٤٩١٥١٧٧٧٠٠٠١١' },
      { search: '１５１ ７７７' },
      { search: '٧٧٧٠٠٠١١' },
    ]) {
      expect(await findIds(query)).toEqual([id]);
    }
    const path = `${customers}?phone=+${encodeURIComponent('٤٩١٥١٧٧٧٠٠٠١١')}`;
    expect((await store.get<CustomerListJson>(path)).body.customers).toHaveLength(1);
    const wide = (text: string) =>
      text.replaceAll(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
    const { customer, customerCard, path: cardPath } = await enrol(store);
    expect(await findIds({ code: wide(customerCard.code) })).toEqual([customer.id]);
    const byCode = `${store.store}/customer_cards/by_code/${encodeURIComponent(wide(customerCard.code))}`;
    expect((await store.get<CustomerCardDetailJson>(byCode)).status).toBe(200);
    const { body } = await store.post<CustomerCardDetailJson>(`${cardPath}/stamp`, {
      stamps: '＋٣',
    });
    expect(body.stamps_count).toBe(3);
    const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: 'Tea', stamps_required: '１２', expires_at: '٢٠٣٦-٠١-٣١T١٢:٠٠:٠٠Z' },
    });
    expect([card.stamps_required, card.expires_at]).toEqual([12, '2036-01-31T12:00:00.000Z']);
    const shop = {
      name: 'Souk',
      address: 'Souk 1',
      pin: { latitude: '٢٥.٢', longitude: '５５.３' },
    };
    const pinned = await store.post<LocationJson>(`${store.store}/locations`, { location: shop });
    expect([pinned.body.latitude, pinned.body.longitude]).toEqual([25.2, 55.3]);
  });
});
