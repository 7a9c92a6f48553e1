import { eventually } from '../support/jest/eventually.js';
import type { Answer } from './caller.js';
import { Difference, type Json, type Lane, type Pass } from './lane.js';
import { reached } from './model.js';

/** Of a lane. Somebody looks at each now and then. */
const MAX_PASSES = 8;
const FOLLOWED_WITHIN_MS = 240_000;

/** WEBCARD-01: the page of a customer card, whose pass is followed from then on. */
export async function openPass(lane: Lane): Promise<boolean> {
  const openedPass = lane.passes.length < MAX_PASSES ? undefined : lane.random.pick(lane.passes);
  const customerCard = openedPass?.card ?? lane.random.pick(lane.customerCards);
  if (!customerCard) return false;
  let pass = lane.passes.find((one) => one.card === customerCard);
  if (!pass) {
    const { body } = await lane.caller.settle({ method: 'GET', path: lane.pathOf(customerCard) });
    const path = `/passes/${String((body as Json)['uuid'])}`;
    lane.passes.push((pass = { card: customerCard, path, tag: 0, text: '' }));
  }
  const page = await lane.expectRead(pass.path, shownOf(pass), shownBy);
  look(pass, page);
  return true;
}

/** Checks that every change of a pass came with a higher tag. */
export async function expectPasses(lanes: Lane[]): Promise<void> {
  for (const lane of lanes) {
    for (const pass of lane.passes) {
      const isFollowed = (page: Answer) =>
        shownBy(page) === shownOf(pass) &&
        (page.status !== 200 || ['', shownOf(pass)].includes(pass.text) || tagOf(page) > pass.tag);
      const page = await eventually(
        () => lane.caller.settle({ method: 'GET', path: pass.path }),
        isFollowed,
        FOLLOWED_WITHIN_MS,
      ).catch((error: unknown) => {
        throw new Difference(`${pass.path} shows ${shownOf(pass)} under no new tag: ${error}`);
      });
      look(pass, page);
    }
  }
}

function look(pass: Pass, page: Answer): void {
  if (page.status !== 200) return;
  const tag = tagOf(page);
  if (tag < pass.tag) throw new Difference(`${pass.path} had tag ${pass.tag}, and now ${tag}`);
  pass.tag = tag;
  pass.text = shownOf(pass);
}

/** ERASE-08 keeps balances for the store only; the link of a merged card leads to another one (WEBCARD-08). */
function shownOf({ card }: Pass): string {
  if (reached(card).customer.erased) return '404';
  const count = card.count.toLocaleString('en');
  return card.closedInto ? '302' : `${count} / ${card.card.required}`;
}

function shownBy({ status, text }: Answer): string {
  return status === 200 ? String(/<strong>(.*?)<\/strong>/.exec(text)?.[1]) : String(status);
}

function tagOf({ text }: Answer): number {
  return Number(/data-tag="(\d+)"/.exec(text)?.[1]);
}
