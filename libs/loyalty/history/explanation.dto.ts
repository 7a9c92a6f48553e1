import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';

const STATES = ['locked', 'unlocked', 'redeemed'] as const;
export type RewardState = (typeof STATES)[number];

@Dto('ExplainedReward')
export class ExplainedRewardJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({ example: 'A free coffee', description: 'The name.' })
  declare readonly name: string;
  @IntegerProperty({ example: 10, description: 'The number of stamps it takes.' })
  declare readonly stamps_required: number;
  @OneOfProperty(STATES, { description: 'redeemed: and not unlocked again since' })
  declare readonly state: RewardState;
  @TimestampProperty({
    nullable: true,
    description: 'When it was unlocked, redeemed, or locked again; null if it never was unlocked',
  })
  declare readonly since: string | null;
}

@Dto('ExplanationStep')
export class ExplanationStepJson {
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: 'The id of the event.' })
  declare readonly event_id: string;
  @TextProperty({
    example: 'Mar 1, 2026, 2:05 PM: 2 stamps added, at Old Town, by Kim',
    description: "In the store's language, or in English where there are no texts in that",
  })
  declare readonly text: string;
  @IntegerProperty({ nullable: true, example: 2, description: 'The signed change' })
  declare readonly stamps: number | null;
  @IntegerProperty({ example: 7, description: 'After the step' }) declare readonly balance: number;
}

@Dto('Explanation')
export class ExplanationJson {
  @IntegerProperty({ example: 7, description: 'The stamps on the card now.' })
  declare readonly balance: number;
  @ObjectsProperty(() => ExplainedRewardJson, { description: 'Cheapest first' })
  declare readonly rewards: ExplainedRewardJson[];
  @ObjectsProperty(() => ExplanationStepJson, {
    description:
      'Oldest first. The last 250 one by one; all earlier ones are one step, the first, with their sum',
  })
  declare readonly steps: ExplanationStepJson[];
}
