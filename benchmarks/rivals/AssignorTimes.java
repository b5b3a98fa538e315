import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/** Times Kafka's own assignor classes, warm: a line `side assignor question seconds` for each, the seconds of the fastest run. */
public class AssignorTimes {
    static final int MEMBERS = 100, TOPICS = 100, PARTITIONS = 500, RUNS = 12;
    static final List<String> IDS = new ArrayList<>(), NAMES = new ArrayList<>();
    static final List<Uuid> TOPIC_IDS = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Random chance = new Random(1);
        for (int i = 0; i < MEMBERS + 5; i++) IDS.add(new java.util.UUID(chance.nextLong(), chance.nextLong()).toString());
        for (int i = 0; i < TOPICS; i++) {
            NAMES.add("topic-" + i);
            TOPIC_IDS.add(new Uuid(chance.nextLong(), chance.nextLong()));
        }
        for (String name : new String[] {"Range", "RoundRobin", "Sticky", "CooperativeSticky"}) client(name);
        for (String name : new String[] {"Range", "Uniform", "Simple"}) server(name);
    }

    /** Members of a question: all as before, five of them new, or with unequal subscriptions. */
    static List<String> members(String question) {
        return question.equals("again") ? IDS.subList(5, MEMBERS + 5) : IDS.subList(0, MEMBERS);
    }

    static boolean subscribes(String question, int member, int topic) {
        return !question.equals("unequal") || (topic + member) % 7 != 0;
    }

    static void client(String name) throws Exception {
        AbstractPartitionAssignor assignor = (AbstractPartitionAssignor) Class.forName("org.apache.kafka.clients.consumer." + name + "Assignor")
            .getDeclaredConstructor().newInstance();
        Map<String, List<TopicPartition>> before = Map.of();
        for (String question : new String[] {"fresh", "again", "unequal"}) {
            // The eager sticky assignor reads its claims from user data, which it makes itself.
            if (name.equals("Sticky") && !question.equals("fresh")) continue;
            Map<String, List<TopicPartition>> held = before, given = null;
            double best = Double.MAX_VALUE;
            for (int run = 0; run < RUNS; run++) {
                Map<String, Subscription> subscriptions = new HashMap<>();
                List<String> members = members(question);
                for (int i = 0; i < members.size(); i++) {
                    List<String> topics = new ArrayList<>();
                    for (int j = 0; j < TOPICS; j++) if (subscribes(question, i, j)) topics.add(NAMES.get(j));
                    List<TopicPartition> owned = held.getOrDefault(members.get(i), List.of());
                    subscriptions.put(members.get(i), new Subscription(topics, null, owned, 3, Optional.empty()));
                }
                Map<String, Integer> counts = new HashMap<>();
                for (String topic : NAMES) counts.put(topic, PARTITIONS);
                long start = System.nanoTime();
                given = assignor.assign(counts, subscriptions);
                best = Math.min(best, (System.nanoTime() - start) / 1e9);
            }
            if (question.equals("fresh")) before = given;
            tell("client", name, question, best);
        }
    }

    static void server(String name) throws Exception {
        PartitionAssignor assignor = (PartitionAssignor) Class.forName("org.apache.kafka.coordinator.group.assignor." + name + "Assignor")
            .getDeclaredConstructor().newInstance();
        Set<Uuid> exist = new HashSet<>(TOPIC_IDS);
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return exist.contains(topic) ? PARTITIONS : -1; }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        };
        Map<String, Map<Uuid, Set<Integer>>> before = new HashMap<>();
        for (String question : new String[] {"fresh", "again", "unequal"}) {
            Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
            Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
            List<String> ids = members(question);
            for (int i = 0; i < ids.size(); i++) {
                String id = ids.get(i);
                Map<Uuid, Set<Integer>> owned = before.getOrDefault(id, Map.of());
                owned.forEach((topic, numbers) -> numbers.forEach(number -> owners.computeIfAbsent(topic, t -> new HashMap<>()).put(number, id)));
                Set<Uuid> subscribed = new HashSet<>();
                for (int j = 0; j < TOPICS; j++) if (subscribes(question, i, j)) subscribed.add(TOPIC_IDS.get(j));
                members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.empty(), subscribed, new Assignment(owned)));
            }
            SubscriptionType type = question.equals("unequal") ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
            GroupSpec group = new GroupSpecImpl(members, type, owners);
            double best = Double.MAX_VALUE;
            GroupAssignment given = null;
            for (int run = 0; run < RUNS; run++) {
                long start = System.nanoTime();
                given = assignor.assign(group, topics);
                best = Math.min(best, (System.nanoTime() - start) / 1e9);
            }
            if (question.equals("fresh")) given.members().forEach((id, member) -> before.put(id, member.partitions()));
            tell(name.equals("Simple") ? "share" : "consumer", name, question, best);
        }
    }

    static void tell(String side, String name, String question, double seconds) {
        String spelt = name.equals("CooperativeSticky") ? "cooperative-sticky" : name.toLowerCase();
        System.out.printf(Locale.ROOT, "%s %s %s %.6f%n", side, spelt, question, seconds);
    }
}
