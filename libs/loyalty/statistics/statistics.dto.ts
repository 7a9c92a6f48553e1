import { IntegerField, OneOfField, TimeField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  IntegerTableProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
} from '#platform/http/response-fields.js';
import { INTERVALS, type Interval } from './local-clock.js';

/** A store that is open from eight to six, but on Sundays. */
const EXAMPLE_HOURS = Array.from({ length: 7 }, (_, weekday) =>
  Array.from({ length: 24 }, (__, hour) => (weekday < 6 && hour >= 8 && hour < 18 ? 12 : 0)),
);

const BREAKDOWNS = ['card', 'location', 'user'] as const;

export type Breakdown = (typeof BREAKDOWNS)[number];

@Dto('StatisticsQuery')
export class StatisticsQuery {
  @TimeField({
    optional: true,
    description: 'The first day; by default 30 days, 12 weeks or 12 months ago',
  })
  declare readonly from: Date | null;
  @TimeField({
    optional: true,
    moment: 'next',
    description: 'The last day; by default today',
  })
  declare readonly to: Date | null;
  @OneOfField([...INTERVALS], {
    default: 'day',
    description: 'What an element of series is about.',
  })
  declare readonly interval: Interval;
  @IntegerField({ min: 1, optional: true, description: 'Only what happened on this card.' })
  declare readonly card_id: number | null;
  @IntegerField({ min: 1, optional: true, description: 'Only what happened at this location.' })
  declare readonly location_id: number | null;
  @IntegerField({
    min: 1,
    optional: true,
    description: 'Only what this user did when signed in; programs with a token are nobody.',
  })
  declare readonly user_id: number | null;
  @OneOfField([...BREAKDOWNS], {
    optional: true,
    description: 'What the field breakdown lists: one element for each card, location or user.',
  })
  declare readonly breakdown: Breakdown | null;
}

@Dto('StatisticsInterval')
export class StatisticsIntervalJson {
  @TextProperty({ format: 'date', example: '2026-03-01', description: 'The first day of it.' })
  declare readonly start: string;
  @IntegerProperty({ description: 'The stamps that stampings gave.' })
  declare readonly stamps: number;
  @IntegerProperty({ description: 'The number of redemptions.' })
  declare readonly redemptions: number;
  @IntegerProperty({
    description:
      'Customers who joined the store, or with card_id got the card, or with location_id or user_id were there, or with that user, for the first time; without those whom an import added.',
  })
  declare readonly new_customers: number;
  @IntegerProperty({ description: 'Customers who were stamped or redeemed a reward.' })
  declare readonly active_customers: number;
  @IntegerProperty({ description: 'Those of them who had been so before the interval.' })
  declare readonly returning_customers: number;
}

@Dto('StatisticsGroup')
export class StatisticsGroupJson {
  @IntegerProperty({ description: 'The card, location or user.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The customers of each day, once for each card.' })
  declare readonly visits: number;
  @IntegerProperty({ description: 'The stamps that stampings gave.' })
  declare readonly stamps: number;
  @IntegerProperty({ description: 'The number of redemptions.' })
  declare readonly redemptions: number;
  @IntegerProperty({
    description:
      'Customers who got the card, or were at the location or with the user for the first time.',
  })
  declare readonly new_customers: number;
}

@Dto('StatisticsTotals')
class StatisticsTotalsJson {
  @IntegerProperty({ description: 'The stamps on all customer cards.' })
  declare readonly outstanding_stamps: number;
  @IntegerProperty({ description: 'The rewards that are unlocked on customer cards.' })
  declare readonly unlocked_rewards: number;
}

@Dto('Statistics')
export class StatisticsJson {
  @TextProperty({ format: 'date', example: '2026-03-01', description: 'The first day.' })
  declare readonly from: string;
  @TextProperty({ format: 'date', example: '2026-03-31', description: 'The last day, inclusive.' })
  declare readonly to: string;
  @OneOfProperty(INTERVALS, { description: 'What an element of series is about.' })
  declare readonly interval: Interval;
  @TextProperty({ example: 'Europe/Berlin', description: 'The time zone of the days and hours.' })
  declare readonly time_zone: string;
  @ObjectsProperty(() => StatisticsIntervalJson, {
    description: 'One element for each interval, oldest first, those without anything included.',
  })
  declare readonly series: StatisticsIntervalJson[];
  @ObjectProperty(() => StatisticsTotalsJson, {
    description: 'What there is now, whatever from, to, location_id and user_id say.',
  })
  declare readonly totals: StatisticsTotalsJson;
  @IntegerTableProperty(7, 24, {
    example: EXAMPLE_HOURS,
    description:
      'The visits in all of the days together, by weekday, Monday first, and by hour. A visit is a customer, a card and a day, in the hour of the first stamping or redemption.',
  })
  declare readonly by_hour: number[][];
  @ObjectsProperty(() => StatisticsGroupJson, {
    nullable: true,
    description:
      'With the parameter breakdown: what happened by card, location or user, most stamps first, at most 200. Without it null.',
  })
  declare readonly breakdown: StatisticsGroupJson[] | null;
}
