import { eventually } from '../support/jest/eventually.js';
import type { FinalResponse } from './retrying-client.js';
import { Difference, type Json, type Worker, type Pass } from './worker.js';
import { findOpenCard } from './model.js';

/** The passes of a worker, each of which is opened now and then. */
const MAX_PASSES = 8;
const NEW_TAG_WITHIN_MS = 240_000;

/** Opens the page of a customer card (WEBCARD-01), whose pass is checked from then on. */
export async function openPass(worker: Worker): Promise<boolean> {
  const openedPass =
    worker.passes.length < MAX_PASSES ? undefined : worker.random.pick(worker.passes);
  const customerCard = openedPass?.card ?? worker.random.pick(worker.customerCards);
  if (!customerCard) return false;
  let pass = worker.passes.find((candidate) => candidate.card === customerCard);
  if (!pass) {
    const { body } = await worker.client.sendUntilDone({
      method: 'GET',
      path: worker.getPath(customerCard),
    });
    const path = `/passes/${String((body as Json)['uuid'])}`;
    worker.passes.push((pass = { card: customerCard, path, tag: 0, text: '' }));
  }
  const page = await worker.expectResponse(pass.path, predictPage(pass), readPage);
  checkTag(pass, page);
  return true;
}

/** Checks that every change of a pass came with a higher tag. */
export async function expectPasses(workers: Worker[]): Promise<void> {
  for (const worker of workers) {
    for (const pass of worker.passes) {
      const isUpToDate = (page: FinalResponse) =>
        readPage(page) === predictPage(pass) &&
        (page.status !== 200 ||
          ['', predictPage(pass)].includes(pass.text) ||
          readTag(page) > pass.tag);
      const page = await eventually(
        () => worker.client.sendUntilDone({ method: 'GET', path: pass.path }),
        isUpToDate,
        NEW_TAG_WITHIN_MS,
      ).catch((error: unknown) => {
        throw new Difference(`${pass.path} shows ${predictPage(pass)} without a new tag: ${error}`);
      });
      checkTag(pass, page);
    }
  }
}

function checkTag(pass: Pass, page: FinalResponse): void {
  if (page.status !== 200) return;
  const tag = readTag(page);
  if (tag < pass.tag) throw new Difference(`${pass.path} had tag ${pass.tag}, and now ${tag}`);
  pass.tag = tag;
  pass.text = predictPage(pass);
}

/** ERASE-08 keeps balances for the store only; the link of a merged card leads to another one (WEBCARD-08). */
function predictPage({ card }: Pass): string {
  if (findOpenCard(card).customer.erased) return '404';
  if (card.closedInto) return '302';
  const count = card.count.toLocaleString('en');
  // A surplus is described below the picture of the card (WEBCARD-32).
  return card.count > card.card.required ? count : `${count} / ${card.card.required}`;
}

function readPage({ status, text }: FinalResponse): string {
  return status === 200
    ? String(/class="count">.*?<strong>(.*?)<\/strong>/.exec(text)?.[1])
    : String(status);
}

function readTag({ text }: FinalResponse): number {
  return Number(/data-tag="(\d+)"/.exec(text)?.[1]);
}
