import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import { CARD_FORM, REWARD_FORM } from '../support/fixtures/card-form.js';
import { quarters } from '../support/fixtures/pictures.js';
import { Browser } from '../support/browser/browser.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let list: string;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
  list = `/app/stores/${store.accountId}/cards`;
});
afterAll(() => service.stop());

const readCard = async (id: number) =>
  (await store.get<CardJson>(`${store.store}/cards/${id}`)).body;
const readRewards = async (id: number) =>
  (await store.get<RewardJson[]>(`${store.store}/rewards?card_id=${id}`)).body;
const findId = (location: string | null) => Number(/\/cards\/(\d+)/.exec(location ?? '')?.[1]);

async function createDesign(fields: Record<string, string> = {}): Promise<number> {
  const formKey = `key-${Math.random()}`;
  const all = { ...CARD_FORM, ...REWARD_FORM, form_key: formKey, ...fields };
  const { status, location } = await owner.upload(`${list}/new?template=coffee`, list, all);
  expect(status).toBe(303);
  return findId(location);
}

/** Reads the form of the button Undo. */
function readUndo(text: string): { undo: string; fields: Record<string, string> } {
  const [, undo = '', form = ''] =
    /<form method="post" action="([^"]+\/undo)">([^]*?)<\/form>/.exec(text) ?? [];
  const inputs = form.matchAll(/name="(undo|opened_updated_at|page)" value="([^"]*)"/g);
  return { undo, fields: Object.fromEntries([...inputs].map(([, name, value]) => [name, value])) };
}

describe('the pages of cards', () => {
  it('offer twelve templates, each with a picture', async () => {
    expect((await owner.get(list)).text).toContain('No cards yet');
    const { text } = await owner.get(`${list}/new`);
    expect(text.match(/new\?template=\w+"/g)).toHaveLength(13);
    const [, picture = ''] = /src="([^"]*card-strips[^"]*)"/.exec(text) ?? [];
    expect((await owner.get(picture.replaceAll('&amp;', '&'))).status).toBe(200);
  });

  it('create a card with its rewards once, however often the form is sent', async () => {
    const fields = { ...CARD_FORM, ...REWARD_FORM, form_key: 'the-same-key' };
    const first = await owner.upload(`${list}/new?template=coffee`, list, fields);
    const again = await owner.upload(`${list}/new?template=coffee`, list, fields);
    expect([first.status, again.status]).toEqual([303, 303]);
    expect(again.location).toBe(first.location);
    const id = findId(first.location);
    expect(await readCard(id)).toMatchObject({
      name: 'Coffee <card>',
      stamps_required: 8,
      card_color: '#224466',
      strip_color: null,
      show_member_field: true,
      show_stamps_to_reward_field: false,
      expires_at: '2090-05-31T23:59:59.999Z',
    });
    expect(await readRewards(id)).toMatchObject([{ name: 'Free cup', stamps_required: 8 }]);
  });

  it('change only what differs, add and remove rewards, and keep the time of an expiry', async () => {
    const id = await createDesign();
    const expires_at = '2090-05-31T12:00:00.000Z';
    await store.send('PATCH', `${store.store}/cards/${id}`, { card: { expires_at } });
    const [reward] = await readRewards(id);
    const fields = {
      ...CARD_FORM,
      name: 'Tea',
      reward_0_id: String(reward?.id),
      reward_0_name: 'Free cup',
      reward_0_stamps: '8',
      reward_0_removed: 'yes',
      reward_1_id: '',
      reward_1_name: 'Biscuit',
      reward_1_stamps: '4',
    };
    const { status } = await owner.upload(`${list}/${id}`, `${list}/${id}`, fields);
    expect(status).toBe(303);
    expect(await readCard(id)).toMatchObject({ name: 'Tea', expires_at });
    expect(await readRewards(id)).toMatchObject([{ name: 'Biscuit', stamps_required: 4 }]);
  });

  it('name each text of a pass that cannot be saved', async () => {
    const fields = { ...CARD_FORM, ...REWARD_FORM, aux_label_2: 'Open', aux_value_2: '' };
    const { status, text } = await owner.upload(`${list}/new?template=coffee`, list, fields);
    expect(status).toBe(422);
    expect(text).toContain('Text 2: Please fill in this field.');
  });

  it('set the barcode and the words of a store, and say what may be in braces', async () => {
    const texts = { barcode_format: 'code128', stamp_message: '{missing} more to your free cup' };
    const id = await createDesign(texts);
    expect(await readCard(id)).toMatchObject({ ...texts, reward_message: null });
    const path = `${list}/${id}`;
    const page = await owner.get(path);
    expect(page.text).toContain('value="{missing} more to your free cup"');
    expect(page.text).toContain('<option value="code128" selected>');
    const wrong = { ...CARD_FORM, ...texts, reward_message: 'Hello {name}' };
    const refused = await owner.upload(path, path, wrong);
    expect(refused.status).toBe(422);
    expect(refused.text).toContain(
      'In braces, please write only {stamps}, {reward}, {card}, {store}.',
    );
    expect(refused.text).toMatch(/<details class="panel" id="messages" open>/);
    expect((await owner.upload(path, path, { ...CARD_FORM, stamp_message: '' })).status).toBe(303);
    expect(await readCard(id)).toMatchObject({ barcode_format: 'qr', stamp_message: null });
  });

  it('deactivate a reward that was redeemed', async () => {
    const id = await createDesign({ reward_0_stamps: '1' });
    const [reward] = await readRewards(id);
    const customer = { first_name: 'Ada', email: `ada${id}@example.com` };
    const { body } = await store.post<{ id: number; customer_card: { id: number } }>(
      `${store.store}/customers`,
      { customer, card_id: id },
    );
    const card = `${store.store}/customers/${body.id}/customer_cards/${body.customer_card.id}`;
    await store.post(`${card}/redeem`, { reward_id: reward?.id });
    const removal = {
      ...CARD_FORM,
      reward_0_id: String(reward?.id),
      reward_0_name: 'Free cup',
      reward_0_stamps: '1',
      reward_0_removed: 'yes',
    };
    const page = `${list}/${id}`;
    expect((await owner.get(page)).text).toContain('This changes 1 card.');
    expect((await owner.upload(page, page, removal)).status).toBe(303);
    expect(await readRewards(id)).toMatchObject([{ id: reward?.id, active: false }]);
  });

  it('show a form with errors again with links to the fields, and save nothing', async () => {
    const fields = {
      ...CARD_FORM,
      name: '',
      stamps_required: '22',
      reward_0_id: '',
      reward_0_name: '',
      reward_0_stamps: '3',
      max_stamps_per_day: '0',
    };
    const { status, text } = await owner.upload(`${list}/new?template=coffee`, list, fields);
    expect(status).toBe(422);
    for (const anchor of [
      'field-name',
      'field-stamps_required',
      'field-reward_0_name',
      'field-max_stamps_per_day',
    ]) {
      expect(text).toContain(`<a href="#${anchor}">`);
      expect(text).toContain(`id="${anchor}"`);
    }
    expect(text).not.toMatch(/must (be|have)/);
  });

  it('ask before the changes of somebody else are replaced', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    const { updated_at: opened_updated_at } = await readCard(id);
    await store.send('PATCH', `${store.store}/cards/${id}`, { card: { header_text: 'Theirs' } });
    const rejected = await owner.upload(page, page, { ...CARD_FORM, opened_updated_at });
    expect(rejected.status).toBe(422);
    expect(rejected.text).toContain('Somebody else has changed this card');
    expect(await readCard(id)).toMatchObject({ header_text: 'Theirs' });
    const [, current = ''] = /name="opened_updated_at" value="([^"]+)"/.exec(rejected.text) ?? [];
    expect(
      (await owner.upload(page, page, { ...CARD_FORM, opened_updated_at: current })).status,
    ).toBe(303);
    expect(await readCard(id)).toMatchObject({ header_text: null });
  });

  it('still names somebody else’s change after a save that had errors', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    const { updated_at: opened_updated_at } = await readCard(id);
    await store.send('PATCH', `${store.store}/cards/${id}`, { card: { header_text: 'Theirs' } });
    const refused = await owner.upload(page, page, { ...CARD_FORM, name: '', opened_updated_at });
    expect(refused.status).toBe(422);
    expect(refused.text).toContain('Name of the card: Please fill in this field.');
    expect(refused.text).not.toContain('marked in red');
    const [, openedAt = ''] = /name="opened_updated_at" value="([^"]+)"/.exec(refused.text) ?? [];
    const corrected = await owner.upload(page, page, { ...CARD_FORM, opened_updated_at: openedAt });
    expect(corrected.text).toContain('Somebody else has changed this card');
  });

  it('undo what a save has changed: the card, and rewards that were changed, added and removed', async () => {
    const id = await createDesign({
      reward_1_id: '',
      reward_1_name: 'Biscuit',
      reward_1_stamps: '4',
      strip_tinted: 'yes',
      strip_color: '#3e7a2e',
    });
    const page = `${list}/${id}`;
    const before = await readCard(id);
    expect(before.strip_color).toBe('#3E7A2E');
    const [cup, biscuit] = await readRewards(id);
    const { location } = await owner.upload(page, page, {
      ...CARD_FORM,
      name: 'Tea',
      card_color: '#ff0000',
      reward_0_id: String(cup?.id),
      reward_0_name: 'Free pot',
      reward_0_stamps: '7',
      reward_1_id: String(biscuit?.id),
      reward_1_name: 'Biscuit',
      reward_1_stamps: '4',
      reward_1_removed: 'yes',
      reward_2_id: '',
      reward_2_name: 'Cake',
      reward_2_stamps: '6',
    });
    expect(await readCard(id)).toMatchObject({ name: 'Tea', strip_color: null });
    const { text } = await owner.get(location ?? '');
    const { undo, fields } = readUndo(text);
    expect(undo).toBe(`${page}/undo`);
    const undone = await owner.submit(page, undo, fields);
    expect(undone.location).toBe(`${page}?done=undone`);
    const { updated_at: _at, ...values } = before;
    expect(await readCard(id)).toMatchObject(values);
    expect(await readRewards(id)).toMatchObject([
      { id: cup?.id, name: 'Free cup', stamps_required: 8 },
      { name: 'Biscuit', stamps_required: 4 },
    ]);
    expect((await owner.get(page)).text).not.toContain(`${page}/undo`);
  });

  it('undo a new picture, and nothing after somebody else’s change', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    const upload = async (width: number) => {
      const picture = await quarters(width, 300).png().toBuffer();
      return owner.upload(page, page, { ...CARD_FORM, strip_type: 'image' }, { picture });
    };
    await upload(400);
    const readStrip = async () =>
      /~i-([0-9a-f]{64})/.exec((await owner.get(page)).text)?.[1] ?? 'none';
    const first = await readStrip();
    const { location } = await upload(200);
    expect(await readStrip()).not.toBe(first);
    const { undo, fields } = readUndo((await owner.get(location ?? '')).text);
    expect((await owner.submit(page, undo, fields)).status).toBe(303);
    expect(await readStrip()).toBe(first);
    const saved = await owner.upload(page, page, { ...CARD_FORM, name: 'Tea' });
    const late = readUndo((await owner.get(saved.location ?? '')).text);
    await store.send('PATCH', `${store.store}/cards/${id}`, { card: { header_text: 'Theirs' } });
    const rejected = await owner.submit(page, late.undo, late.fields);
    expect(rejected.status).toBe(422);
    expect(await readCard(id)).toMatchObject({ name: 'Tea', header_text: 'Theirs' });
    expect((await owner.get(`${page}?done=saved&undo=1`)).text).not.toContain(`${page}/undo`);
  });

  it('save once, although a form that is sent again finds the card changed', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    const { updated_at: opened_updated_at } = await readCard(id);
    const fields = {
      ...CARD_FORM,
      ...REWARD_FORM,
      reward_0_name: 'Tea',
      name: 'Once',
      opened_updated_at,
      form_key: 'save',
    };
    const save = () => owner.upload(page, page, fields);
    const responses = [...(await Promise.all([save(), save()])), await save()];
    expect(responses.map(({ status }) => status)).toEqual([303, 303, 303]);
    expect(await readRewards(id)).toHaveLength(2);
  });

  it('store an uploaded picture, and explain a file that is none', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    const picture = await quarters(400, 300).png().toBuffer();
    expect((await owner.upload(page, page, CARD_FORM, { picture })).status).toBe(303);
    expect(await readCard(id)).toMatchObject({ strip_type: 'image' });
    const bad = await owner.upload(page, page, CARD_FORM, { picture: Buffer.from('no picture') });
    expect(bad.status).toBe(422);
    expect(bad.text).toContain('This file is not a picture');
    const large = await owner.upload(page, page, CARD_FORM, { picture: Buffer.alloc(3_000_000) });
    expect(large.status).toBe(413);
    const form = await owner.submit(page, page, CARD_FORM);
    expect(form.status).toBe(415);
  });

  it('warn of colours that hide stamps and texts, in the previews of the form', async () => {
    const white = {
      ...CARD_FORM,
      card_color: '#ffffff',
      stamp_color: '#ffffff',
      strip_type: 'color',
    };
    const { status, text } = await owner.submit(
      `${list}/new?template=bar`,
      `${list}/preview`,
      white,
    );
    expect(status).toBe(200);
    expect(text).toContain('Full and empty stamps would look alike');
    expect(text).toContain('The text is hard to read');
    const { text: good } = await owner.submit(
      `${list}/new?template=bar`,
      `${list}/preview`,
      CARD_FORM,
    );
    expect(good).not.toContain('class="banner bad"');
  });

  it('end a warning of colours with one press, without a script', async () => {
    const white = { ...CARD_FORM, text_color: '#ffffff', card_color: '#fff1dc' };
    const fixed = { ...white, show: 'text_hard_to_read' };
    const { status, text } = await owner.upload(`${list}/new?template=bar`, list, fixed);
    expect(status).toBe(200);
    expect(text).toContain('id="warning-text_hard_to_read" hidden');
    expect(text).toMatch(/name="text_color"[^>]* value="#000000"/);
    const preview = await owner.upload(`${list}/new?template=bar`, list, { ...white, show: '1' });
    expect(preview.text).toContain('id="warning-text_hard_to_read">');
  });

  it('ask before a reward takes more than one card', async () => {
    const fields = { ...REWARD_FORM, reward_0_stamps: '12' };
    const page = `${list}/new?template=coffee`;
    const rejected = await owner.upload(page, list, { ...CARD_FORM, ...fields });
    expect(rejected.status).toBe(422);
    expect(rejected.text).toContain('This card is full at 8 stamps.');
    const id = await createDesign({ ...fields, reward_0_beyond: 'yes' });
    const saved = await owner.get(`${list}/${id}`);
    expect(saved.text).toContain('uses 12 stamps, beyond a full card');
    expect(saved.text).toMatch(/name="reward_0_beyond" value="yes" checked/);
  });

  it('draw previews of any input, and no pictures of other stores', async () => {
    const rubbish = { ...CARD_FORM, stamps_required: '-5', card_color: 'red', stamp_icon: '<b>' };
    const preview = await owner.submit(`${list}/new?template=bar`, `${list}/preview`, rubbish);
    expect(preview.status).toBe(200);
    const [, strip = ''] = /href="([^"]*card-strips[^"]*)"/.exec(preview.text) ?? [];
    const path = strip.replaceAll('&amp;', '&');
    expect((await owner.get(path)).status).toBe(200);
    const theirs = path.replace(/p-\w+/, `i-${'a'.repeat(64)}`);
    expect((await owner.get(theirs)).status).toBe(404);
    for (const wrong of ['22', '9x', '~', '', '-1']) {
      expect((await owner.get(path.replace(/[^~]+$/, wrong))).status).toBe(404);
      expect((await owner.get(path.replace(/=\d+~\d+/, `=1~${wrong}`))).status).toBe(404);
    }
  });

  it('archive a card and take it out again, each after a question', async () => {
    const id = await createDesign();
    const page = `${list}/${id}`;
    expect((await owner.get(`${page}/archive`)).text).toContain('Archive this card?');
    expect((await owner.submit(page, `${page}/archive`)).location).toBe(`${list}?done=archived`);
    expect((await owner.get(`${list}?scope=archived`)).text).toContain(`${page}"`);
    await owner.submit(page, `${page}/unarchive`);
    expect((await readCard(id)).archived_at).toBeNull();
  });

  it('lead to a preview that anybody can open with its link, and nobody with another', async () => {
    const id = await createDesign();
    const { status, location } = await owner.get(`${list}/${id}/preview`);
    expect(status).toBe(303);
    const { pathname } = new URL(location ?? '');
    const preview = await fetch(service.baseUrl + pathname, { headers: { accept: 'text/html' } });
    expect(preview.status).toBe(200);
    expect(await preview.text()).toContain('Coffee &lt;card&gt;');
    const [account, card, at, mac] = (pathname.split('/').at(-1) ?? '').split('-');
    for (const token of [
      [account, Number(card) + 1, at, mac],
      [account, card, Number(at) + 1, mac],
      [account, card, at, 'A'.repeat(22)],
      ['x'],
    ]) {
      const response = await fetch(`${service.baseUrl}/card-previews/${token.join('-')}`);
      expect(response.status).toBe(410);
    }
  });

  it('respond 404 to users of other stores', async () => {
    const id = await createDesign();
    const otherStore = await service.newStore();
    const stranger = await Browser.signedIn(service, otherStore.email);
    expect((await stranger.get(`${list}/${id}`)).status).toBe(404);
    const theirs = `/app/stores/${otherStore.accountId}/cards`;
    expect((await stranger.get(`${theirs}/${id}`)).status).toBe(404);
    const saved = await stranger.upload(`${theirs}/new?template=bar`, `${theirs}/${id}`, CARD_FORM);
    expect(saved.status).toBe(404);
    expect(
      (await stranger.submit(`${theirs}/new?template=bar`, `${theirs}/${id}/archive`)).status,
    ).toBe(404);
  });

  it('stay below 30 KB', async () => {
    const id = await createDesign({ stamps_required: '21' });
    for (const path of [list, `${list}/new`, `${list}/new?template=coffee`, `${list}/${id}`]) {
      const { text } = await owner.get(path);
      expect([path, Buffer.byteLength(text) < 30_000]).toEqual([path, true]);
    }
  });
});
