import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import {
  eventHash,
  leafHash,
  leafOf,
  NotProven,
  publicEventId,
  rootOfInclusion,
  verifierOf,
  verifyCheckpoint,
  verifyConsistency,
  verifyContinuation,
  verifyExport,
  verifyInclusion,
  verifyProof,
} from './verifier.mjs';

const here = new URL('.', import.meta.url);
const vectors = JSON.parse(readFileSync(new URL('vectors/vectors.json', here), 'utf8'));
const bytes = (text) => Buffer.from(text, 'base64');
const { verifier_key: key, checkpoint, witnessed } = vectors.note;

for (const name of ['known', 'many']) {
  const { leaves, roots, inclusion, consistency } = vectors[name];
  const rootAt = (size) => bytes(roots[size - 1]);

  describe(`the tree of ${name} leaves`, () => {
    test('every inclusion proof of another implementation is accepted', () => {
      for (const { size, index, proof } of inclusion) {
        const leaf = leafHash(bytes(leaves[index]));
        verifyInclusion({ leaf, index, size, proof: proof.map(bytes), root: rootAt(size) });
      }
    });

    test('another leaf, index, size, root, or a longer or shorter proof is refused', () => {
      for (const { size, index, proof } of inclusion) {
        const leaf = leafHash(bytes(leaves[index]));
        const right = { leaf, index, size, proof: proof.map(bytes), root: rootAt(size) };
        const wrong = [
          { leaf: leafHash('another') },
          { index: size },
          { index: -1 },
          { root: leafHash('another') },
          { proof: [...right.proof, leaf] },
          ...(size > 1 ? [{ proof: right.proof.slice(1) }, { index: index === 0 ? 1 : 0 }] : []),
          ...right.proof.map((_, i) => ({ proof: right.proof.with(i, leafHash('another')) })),
        ];
        for (const change of wrong) {
          // Leaves may be equal to others only where the proof says so.
          assert.throws(() => verifyInclusion({ ...right, ...change }), NotProven);
        }
      }
    });

    test('every consistency proof of another implementation is accepted', () => {
      for (const { old, size, proof } of consistency) {
        const first = { size: old, root: rootAt(old) };
        verifyConsistency(first, { size, root: rootAt(size) }, proof.map(bytes));
      }
    });

    test('another first or second tree, or a longer or shorter proof is refused', () => {
      for (const { old, size, proof: consistencyProof } of consistency) {
        const first = { size: old, root: rootAt(old) };
        const second = { size, root: rootAt(size) };
        const proof = consistencyProof.map(bytes);
        const other = leafHash('another');
        assert.throws(() => verifyConsistency({ ...first, root: other }, second, proof), NotProven);
        assert.throws(() => verifyConsistency(first, { ...second, root: other }, proof), NotProven);
        assert.throws(() => verifyConsistency(first, second, [...proof, other]), NotProven);
        if (proof.length > 0) {
          assert.throws(() => verifyConsistency(first, second, proof.slice(1)), NotProven);
          assert.throws(() => verifyConsistency(second, first, proof), NotProven);
        }
      }
    });
  });
}

test('the tree of nothing is continued by every other', () => {
  verifyConsistency({ size: 0, root: leafHash('any') }, { size: 5, root: leafHash('other') }, []);
});

test('an event has the hash and the leaf of the definition', () => {
  vectors.events.events.forEach((event, i, all) => {
    assert.equal(eventHash(event, all[i - 1]?.hash ?? null), event.hash);
    assert.deepEqual(leafOf(event), leafHash(bytes(vectors.events.leaves[i])));
  });
});

describe('a checkpoint', () => {
  test('is accepted from its signer, also beside a witness', () => {
    for (const note of [checkpoint, witnessed]) {
      const { origin, size, root } = verifyCheckpoint(note, key);
      assert.deepEqual([origin, size], ['shop.example/inkpad', 3]);
      assert.equal(root.toString('base64'), vectors.events.roots[2]);
    }
  });

  test('that was changed or lacks its signature is refused', () => {
    for (const note of [
      checkpoint.replace('\n3\n', '\n4\n'),
      checkpoint.replace('shop', 'stop'),
      `${checkpoint}x`,
      checkpoint.slice(0, -1),
      checkpoint.split('\n\n')[0] + '\n\n',
      '',
    ]) {
      assert.throws(() => verifyCheckpoint(note, key), NotProven);
    }
  });

  test('is refused with a key that is none or damaged', () => {
    for (const text of ['', 'x+12345678+AAAA', key.replace('shop', 'stop'), key.slice(0, -4)]) {
      assert.throws(() => verifierOf(text), NotProven);
    }
  });
});

const { events, inclusion, roots } = vectors.events;

function createResponse(index) {
  const { hash, ...event } = events[index];
  return {
    event_id: publicEventId(event.id),
    leaf_index: index,
    tree_size: 3,
    root_hash: roots[2],
    inclusion_proof: inclusion.find(({ size, index: i }) => size === 3 && i === index).proof,
    checkpoint,
    hash,
    previous_hash: events[index - 1]?.hash ?? null,
    event,
  };
}

describe('the response about one event', () => {
  test('is proven', () => {
    for (const index of [0, 1, 2]) {
      assert.equal(verifyProof(createResponse(index), key).event.revision, index);
    }
  });

  test('is refused when anything in it was changed', () => {
    const response = createResponse(1);
    for (const change of [
      { event: { ...response.event, data: { ...response.event.data, stamps: 9 } } },
      { event: { ...response.event, id: events[0].id } },
      { event_id: publicEventId(events[0].id) },
      { leaf_index: 0 },
      { tree_size: 4 },
      { root_hash: roots[1] },
      { hash: events[0].hash },
      { previous_hash: null },
      { inclusion_proof: response.inclusion_proof.slice(1) },
      { inclusion_proof: ['x'] },
      { inclusion_proof: undefined },
      { checkpoint: checkpoint.replace('\n3\n', '\n4\n') },
    ]) {
      assert.throws(() => verifyProof({ ...response, ...change }, key), NotProven);
    }
  });
});

const header = { format: 'inkpad-history/1', account_id: 1, checkpoint };
const lines = [
  header,
  ...events.map((event, index) => ({
    event,
    leaf_index: index,
    inclusion_proof: createResponse(index).inclusion_proof,
  })),
  { personal_key: { customer_id: 7, key: null } },
  { picture: { hash: createHash('sha256').update('png').digest('hex'), png: btoa('png') } },
  { end: { events: 3, streams: 1 } },
].map((line) => JSON.stringify(line));

async function* iterate(list) {
  yield* list;
}

describe('an exported history', () => {
  test('is proven', async () => {
    assert.deepEqual(await verifyExport(iterate(lines), key), {
      accountId: 1,
      events: 3,
      streams: 1,
      size: 3,
      keys: 1,
    });
  });

  const changed = {
    'a changed picture': [
      lines.with(5, lines[5].replace(btoa('png'), btoa('gif'))),
      /line 6: the picture .* was changed/,
    ],
    'a changed event': [
      lines.with(2, lines[2].replace('"stamps":2', '"stamps":3')),
      /line 3: .* was changed/,
    ],
    'an event left out': [lines.toSpliced(2, 1), /line 3: customer_card-12 lacks revision 1/],
    'an event cut off': [lines.toSpliced(3, 1), /2 of 3 events are here/],
    'events in another order': [
      [lines[0], lines[2], lines[1], ...lines.slice(3)],
      /line 2: .*lacks revision 0/,
    ],
    'an event of another store': [
      lines.with(0, JSON.stringify({ ...header, account_id: 2 })),
      /line 2: .* is of another store/,
    ],
    'another place in the tree': [
      lines.with(3, lines[3].replace('"leaf_index":2', '"leaf_index":1')),
      /line 4: .*not in the order/,
    ],
    'no end': [lines.slice(0, -1), /ends too early/],
    'something after the end': [[...lines, lines[1]], /line 8: something follows the end/],
    'a line that is no JSON': [lines.with(2, '{'), /line 3: this is no JSON object/],
    'an unknown line': [lines.with(4, '{}'), /line 5: this line is of no known kind/],
    'another format': [lines.with(0, '{"format":"inkpad-history/2"}'), /line 1: the format is not/],
    nothing: [[], /the file is empty/],
  };
  for (const [what, [list, message]] of Object.entries(changed)) {
    test(`is refused with ${what}`, async () => {
      await assert.rejects(verifyExport(iterate(list), key), (error) => {
        assert.ok(error instanceof NotProven);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

describe('from the shell', () => {
  const folder = mkdtempSync(join(tmpdir(), 'verifier-'));
  after(() => rmSync(folder, { recursive: true }));
  const file = (name, text) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const run = (...args) => {
    const program = new URL('verifier.mjs', here).pathname;
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
      encoding: 'utf8',
    });
    return { status, text: stdout + stderr };
  };
  const keyFile = file('key', `${key}\n`);

  test('each kind of file is recognised', () => {
    const continuation = { first: checkpoint, second: checkpoint, consistency_proof: [] };
    verifyContinuation(continuation, key);
    const { status, text } = run(
      file('proof.json', JSON.stringify(createResponse(1), null, 2)),
      file('latest', checkpoint),
      file('continuation.json', JSON.stringify(continuation)),
      file('export.ndjson', `${lines.join('\n')}\n`),
      '--key',
      keyFile,
    );
    assert.match(
      text,
      /proof.json: event \S+ \(StampsEarned, customer_card-12 revision 1\) is number 1 in/,
    );
    assert.match(text, /latest: shop.example\/inkpad has signed a history of 3 events/);
    assert.match(text, /begins with the 3 events that were signed before/);
    assert.match(text, /the 3 events of 1 streams of store 1 are all in/);
    assert.equal(status, 0);
  });

  test('what is not proven is said, with exit code 1', () => {
    const { status, text } = run(file('bad', checkpoint.replace('\n3\n', '\n4\n')), '--key', key);
    assert.match(text, /NOT PROVEN: the checkpoint has no valid signature/);
    assert.equal(status, 1);
  });

  test('without a key it explains itself', () => {
    const { status, text } = run('proof.json');
    assert.match(text, /^Usage/);
    assert.equal(status, 2);
  });
});

test('a proof leads to one root only', () => {
  const { size, index, proof } = vectors.many.inclusion.at(-1);
  const leaf = leafHash(bytes(vectors.many.leaves[index]));
  const root = rootOfInclusion({ leaf, index, size, proof: proof.map(bytes) });
  assert.equal(root.toString('base64'), vectors.many.roots[size - 1]);
});
