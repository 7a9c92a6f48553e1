import { toPublicEventId } from '#platform/kernel/public-id.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  JsonProperty,
  TextProperty,
  TextsProperty,
} from '#platform/http/response-fields.js';

const HASH = { format: 'byte', example: 'NRF6yAz15gTd7xOhD3w45f5g+sEpDRtGMlqYcPn18yA=' } as const;
const CHECKPOINT =
  'shop.example/inkpad\n3\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— shop.example/inkpad gRcQpg==\n';

@Dto('EventProof')
export class EventProofJson {
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: 'The id of the event.' })
  declare readonly event_id: string;
  @IntegerProperty({ example: 1, description: 'The number of the event in the history, from 0' })
  declare readonly leaf_index: number;
  @IntegerProperty({ example: 3, description: 'The number of events that the checkpoint covers' })
  declare readonly tree_size: number;
  @TextProperty({ ...HASH, description: 'The root of the tree, as in the checkpoint' })
  declare readonly root_hash: string;
  @TextsProperty(
    { format: 'byte' },
    { example: [HASH.example], description: 'Hashes from the leaf upwards (RFC 6962)' },
  )
  declare readonly inclusion_proof: string[];
  @TextProperty({ example: CHECKPOINT, description: 'A C2SP signed note' })
  declare readonly checkpoint: string;
  @TextProperty({ example: 'ab'.repeat(32), description: 'Of the event, in hexadecimal' })
  declare readonly hash: string;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Of the event before it in its stream; null for the first',
  })
  declare readonly previous_hash: string | null;
  @JsonProperty({
    example: { stream: 'customer_card-12', revision: 1, type: 'StampsEarned' },
    description: 'The recorded event, with its personal data sealed: the hash covers it',
  })
  declare readonly event: Record<string, unknown>;
}

export type EventProof = {
  event: StoredEvent;
  previousHash: string | null;
  index: number;
  size: number;
  root: string;
  proof: Buffer[];
  note: string;
};

export function toEventProofJson(proof: EventProof): EventProofJson {
  const { stream, revision, id, type, version, data, meta, hash } = proof.event;
  return {
    event_id: toPublicEventId(id),
    leaf_index: proof.index,
    tree_size: proof.size,
    root_hash: proof.root,
    inclusion_proof: proof.proof.map((hash) => hash.toString('base64')),
    checkpoint: proof.note,
    hash,
    previous_hash: proof.previousHash,
    event: { stream, revision, id, type, version, data, meta },
  };
}
