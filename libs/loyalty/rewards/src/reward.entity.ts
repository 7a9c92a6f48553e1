import type { RowTable } from '#event-store/rows.js';
import { reward, type Reward } from './reward.js';
import type { RewardEvent } from './reward.events.js';

export const rewardRows: RowTable<Reward, RewardEvent> = { aggregate: reward, table: 'rewards' };
